// Written by `make docs` from leakage/runs/events.py: what a run tells, as the event stream sends it.

/** The result of an attack; `answer` is the sequence number of the frame with its final guess, null if the attack was not tried. */
export interface AttackEnd {
  kind: 'end';
  run?: string;
  seq?: number;
  status?: string;
  answer?: number | null;
  step?: number | null;
  steps?: number | null;
  seconds?: number | null;
  scores?: FrameScores;
  labels?: number[];
  note?: { [name: string]: JsonValue };
  verdict?: VerdictWords | null;
  ending?: Ending | null;
  /** Runs with equal keys take about the same time per step. */
  timing_key?: string | null;
}

/** The result of an audit: a sentence on what was found, and how many attacks were tried and gave pictures. */
export interface AuditEnd {
  kind: 'end';
  run?: string;
  seq?: number;
  status?: string;
  conclusion: string;
  tried: number;
  answered: number;
  seconds: number;
  whole: boolean;
}

/** The scores of a baseline, a picture that does not depend on the private pictures. PSNR is in dB. */
export interface BaselineScores {
  psnr?: number | null;
  mse?: number | null;
  ssim?: number | null;
  lpips?: number | null;
  rank?: number | null;
  rank_pixel?: number | null;
  rank_ssim?: number | null;
  rank_lpips?: number | null;
}

/** What one check of the received model found on the phones in one round. */
export interface CheckFacts {
  check: string;
  title: string;
  measures?: string;
  number: number | null;
  threshold: number;
  tripped: boolean;
  round: number;
}

/** A tensor as some clients received it, beside the agreed one; see engine/handed_layers.py. Its rows are along the first dimension. */
export interface CopyFacts {
  clients: number[];
  changed: boolean;
  changed_rows: number;
  zero_rows: number;
  flat_rows: number;
  value: number | null;
  moved?: number[][];
  cells: number[][];
  marks: boolean[];
}

/** How an attack ended, and in words; of a run that the phone refused also what its checks found. */
export interface Ending {
  how: string;
  words: string;
  checks?: CheckFacts[];
}

/** What one attack found; `picture`: whether the store has its pictures. */
export interface FindingEvent {
  kind: 'finding';
  run?: string;
  seq?: number;
  title: string;
  attacker: string;
  state: string;
  why?: string;
  count?: number;
  labels?: number[];
  distance?: number | null;
  random_distance?: number | null;
  agreement?: number | null;
  planted?: (number | null)[];
  planted_grey?: number | null;
  proved?: boolean;
  warnings?: string[];
  steps?: number;
  seconds?: number;
  picture?: boolean;
}

/** A frame: the attack's guess at one step, with its scores. */
export interface FrameEvent {
  kind: 'frame';
  run?: string;
  seq?: number;
  picture?: boolean;
  step: number;
  seconds: number;
  loss: number | null;
  scores?: FrameScores;
  labels?: number[];
  note?: { [name: string]: JsonValue };
  verdict?: VerdictWords | null;
  views?: { [name: string]: string } | null;
}

/** The scores of a frame, see `Frame` in evaluation/referee.py; scores that were not measured at this frame are left out. */
export interface FrameScores {
  cosine?: number | null;
  relative_l2?: number | null;
  psnr?: number | null;
  mse?: number | null;
  ssim?: number | null;
  lpips?: number | null;
  label_accuracy?: number | null;
  rank?: number | null;
  identified?: number | null;
  registered_psnr?: number | null;
  rmse255?: number | null;
  psnr_adadefense?: number | null;
  mse_norm?: number | null;
  psnr_each?: (number | null)[] | null;
  ssim_each?: (number | null)[] | null;
  lpips_each?: (number | null)[] | null;
  rank_each?: (number | null)[] | null;
  rank_pixel?: (number | null)[] | null;
  rank_ssim?: (number | null)[] | null;
  rank_lpips?: (number | null)[] | null;
}

/** The distances between two updates, over all tensors together. */
export interface GradientDistances {
  cosine?: number | null;
  relative_l2?: number | null;
}

/** The norm of the gradient of each picture alone, by the picture's id; null where the norm is no finite number. */
export interface GradientNormsEnd {
  kind: 'end';
  run?: string;
  seq?: number;
  status?: string;
  norms: { [name: string]: number | null };
}

/** Rank and condition number of d(gradient)/d(picture), see `Spectrum` in engine/jacobian_rank.py. */
export interface GradientRank {
  rank: number;
  unknowns: number;
  directions: number;
  sent: number;
  condition: number | null;
  exact: boolean;
  above: NoiseCount[];
}

/** The measured rank of the whole gradient. */
export interface GradientRankEvent {
  kind: 'gradient';
  run?: string;
  seq?: number;
  measured: GradientRank;
}

/** The layers of the model that a server hands out in the first round, beside the network that was agreed on. */
export interface HandedModelEnd {
  kind: 'end';
  run?: string;
  seq?: number;
  status?: string;
  layers: LayerFacts[];
}

/** The result of training a network that undoes updates: its id, and its mean squared error on held-out pictures; null if stopped. */
export interface InverterEnd {
  kind: 'end';
  run?: string;
  seq?: number;
  status?: string;
  inverter?: string | null;
  mse?: number | null;
  /** The error of the mean training picture, which does not depend on the update. */
  mse_mean?: number | null;
  seconds?: number;
}

export type JsonValue = unknown;

/** A layer of the model that a server hands out: its class, and whether it is the same, changed, added or removed. */
export interface LayerFacts {
  name: string;
  kind: string;
  change: string;
  tensors: TensorFacts[];
}

/** The line-up, the private picture among others of its kind that are ranked by similarity to a guess: its size, and what it shows. */
export interface LineupFacts {
  size: number;
  words: string;
}

/** The network that computes LPIPS (empty: there is no LPIPS), and a sentence that names the network, or says why there is none. */
export interface LpipsFacts {
  net: string;
  words: string;
}

/** The facts about an attack that do not change during the run, for pages: a group for each question that it answers. */
export interface MetaEvent {
  kind: 'meta';
  run?: string;
  seq?: number;
  checks?: CheckFacts[];
  /** How many pictures the client trained on. */
  batch: number;
  /** Height and width of a picture in pixels. */
  size: number;
  /** 3 for color, 1 for gray. */
  channels: number;
  /** The address of the contact sheet of the private pictures. */
  private: string;
  /** Title, class and label of each private picture. */
  pictures: PrivatePicture[];
  /** The names of the classes, in the order of their labels. */
  class_names: string[];
  /** How many classes the network tells apart, where there are more classes than names. */
  classes?: number | null;
  /** The update that the server received. */
  received: ReceivedUpdate;
  /** The distance between the update that was sent and the gradient without protections. */
  changed?: GradientDistances | null;
  /** The distance between the gradient that the attacker works with and the gradient without protections. */
  known?: GradientDistances | null;
  /** The privacy budget of what this client has sent, where a protection promises one. */
  epsilon?: PrivacyBound | null;
  /** The most steps that the attack makes; null if it computes its answer at once. */
  steps: number | null;
  /** The title of the attack. */
  attack: string;
  /** What the attack minimizes. */
  loss_name: string;
  /** What the attack does, in a sentence. */
  way?: string;
  /** Whether the attacker is given the labels. */
  labels_granted: boolean;
  /** The state of training of the attacked network, in words. */
  weights: string;
  /** Whether the attacked network has BatchNorm layers. */
  batch_norm: boolean;
  /** What the attacker does about each protection, in their order. */
  answers?: string[];
  /** The device that computes the run, in words. */
  device: string;
  /** What the last digits of the result depend on: the version of each package, and how the gradient of a guess is differentiated. */
  versions: { [name: string]: string };
  /** The estimated duration in seconds, made before the run began. */
  estimate?: number | null;
  /** The scores of pictures that do not depend on the update, such as a gray picture. */
  baselines: { [name: string]: BaselineScores };
  /** The line-up in which a guess has to find its original. */
  lineup?: LineupFacts | null;
  /** The network behind the LPIPS score. */
  lpips?: LpipsFacts | null;
}

/** The progress of measuring the rank of d(gradient)/d(picture): the picture was changed along `done` of `directions` directions. */
export interface MovedEvent {
  kind: 'moved';
  run?: string;
  seq?: number;
  done: number;
  directions: number;
}

/** How many directions of a picture change the gradient by more than noise with `share` times the norm of the gradient. */
export interface NoiseCount {
  share: number;
  directions: number;
}

/** A sentence that the user must not miss. */
export interface NoteEvent {
  kind: 'note';
  run?: string;
  seq?: number;
  text: string;
}

/** Epsilon of differential privacy at `delta` after `times` uses; None where epsilon is too large to bound anything. */
export interface PrivacyBound {
  value: number | null;
  delta: number;
  times: number;
  whom?: string;
}

/** The title, class name and label of one private picture; the label is an index into the names of the classes. */
export interface PrivatePicture {
  title: string;
  class_name: string;
  label: number;
}

/** The progress of a training within a round. */
export interface ProgressEvent {
  kind: 'progress';
  run?: string;
  seq?: number;
  done: number;
  loss: number | null;
  seconds: number;
}

/** The rank of the equations that a layer's weights and gradient give for its input; null if the layer is too large. */
export interface RankEvent {
  kind: 'rank';
  run?: string;
  seq?: number;
  name: string;
  rank: number | null;
}

/** The result of measuring ranks: the rank of every measured layer and of the whole gradient, and whether everything was measured. */
export interface RanksEnd {
  kind: 'end';
  run?: string;
  seq?: number;
  status?: string;
  ranks: { [name: string]: number | null };
  seconds: number;
  whole: boolean;
  gradient?: GradientRank | null;
}

/** One tensor of the update: its norm, and `strip`, the magnitudes of its entries as a row of gray levels from 0 to 255. */
export interface ReceivedLayer {
  name: string;
  shape: number[];
  norm: number | null;
  strip: number[];
}

/** The update that the server received, in numbers. */
export interface ReceivedUpdate {
  entries: number;
  bytes: number;
  norm?: number | null;
  layers?: ReceivedLayer[];
  singles?: number[][];
}

/** The run begins anew, and its earlier events are deleted. `text`: the reason, as a sentence. */
export interface RestartEvent {
  kind: 'restart';
  run?: string;
  seq?: number;
  text: string;
}

/** The progress of a training at the end of a round, with the accuracy: the fraction of test pictures that are classified correctly. */
export interface RoundEvent {
  kind: 'round';
  run?: string;
  seq?: number;
  done: number;
  loss: number | null;
  seconds: number;
  accuracy: number;
}

/** The state of the run: queued, running, done, cancelled or failed. If queued: the position from 1, and the wait in seconds. */
export interface StateEvent {
  kind: 'state';
  run?: string;
  seq?: number;
  status: string;
  message?: string;
  position?: number | null;
  wait?: number | null;
}

/** A sentence on what the update says by itself, before any attack. */
export interface StatementEvent {
  kind: 'statement';
  run?: string;
  seq?: number;
  text: string;
}

/** A tensor of a layer: its name and shape; if the layer is not as agreed, its agreed cells, and each copy that clients received. */
export interface TensorFacts {
  name: string;
  shape: number[];
  agreed: number[][];
  copies: CopyFacts[];
}

/** Pictures of frames were deleted: of the frames so far, only those with the numbers `kept` still have a picture. */
export interface ThinnedEvent {
  kind: 'thinned';
  run?: string;
  seq?: number;
  kept: number[];
}

/** The result of a training; no accuracy before the end of its first round, and no checkpoint unless it is finished. */
export interface TrainingEnd {
  kind: 'end';
  run?: string;
  seq?: number;
  status?: string;
  accuracy: number | null;
  checkpoint?: string | null;
  rounds?: number;
  seconds?: number;
  privacy?: TrainingPrivacy | null;
}

/** The number of rounds of a training, and its device. */
export interface TrainingMetaEvent {
  kind: 'meta';
  run?: string;
  seq?: number;
  rounds: number;
  device: string;
}

/** Epsilon of a whole training at `delta`, for the unit `whom` of one client; None where epsilon is too large to bound anything. */
export interface TrainingPrivacy {
  sampled: number | null;
  unsampled: number | null;
  delta: number;
  rate: number;
  steps: number;
  uses: number;
  whom?: string;
}

/** The measurement of a layer's rank begins: the `number`-th of `layers` layers. */
export interface TurnEvent {
  kind: 'turn';
  run?: string;
  seq?: number;
  name: string;
  number: number;
  layers: number;
}

/** The verdict: a word, the numbers behind it, what it means, and the rule; at the end of a run also the word of each picture. */
export interface VerdictWords {
  word: string;
  why: string;
  meaning: string;
  rule: string;
  each?: string[];
}

/** Whatever the stream sends. */
export type RunEvent = StateEvent | NoteEvent | RestartEvent | MetaEvent | FrameEvent | ThinnedEvent | AttackEnd | TrainingMetaEvent | ProgressEvent | RoundEvent | TrainingEnd | InverterEnd | TurnEvent | RankEvent | MovedEvent | GradientRankEvent | RanksEnd | HandedModelEnd | GradientNormsEnd | StatementEvent | FindingEvent | AuditEnd;
