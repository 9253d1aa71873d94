// All texts of a room that the reader does not have already, as data. A translation is another table with the same names.

export const ROOM_PHRASES = {
  unreachable: 'The teacher’s computer cannot be reached. Is this phone in the same network?',
  failed: 'The server could not do this (error {status}). Try again.',
  joinTitle: 'Join your class',
  joinCode: 'The code on the screen',
  joinHelp: 'You need no name and no account. Only the number of votes is shown, never who voted.',
  joinShort: 'A code has five letters or digits.',
  left: 'You left room {code}.',
  goBackIn: 'Go back in',
  ended: 'This room has ended. Thank you.',
  join: 'Join',
  joining: 'Joining …',
  pageTitle: '{title} · Class {code}',
  joined: 'You are in. Your phone follows the screen.',
  answered: '{n} of {all} have answered.',
  firstGuess: 'Your first guess: {letter}',
  fewVotes: 'Fewer than five voted: only the number is shown.',
  votes: '{n} votes',
  vote: '1 vote',
  notOpen: 'This question is not open now.',
  noGuess: 'You did not guess.',
  revealed: 'The answer is shown.',
  voteAgain: 'Vote again.',
  classAt: 'The class is at part {at}.',
  toClass: 'To the class',
  nextLesson: 'The next lesson: {title}.',
  resting: 'No connection to the teacher’s computer. Your answers are kept, and this page tries again.',
  closed: 'The room is closed. Thank you.',
  dotInFront: 'Your dot is on the screen in front.',
  ownTries: 'Your own tries',
  teacherComputes: 'Your teacher computes a choice live on the screen.',
  computeLive: 'Compute it live',
  watchLive: 'Watch the live run',
  live: 'Live',
  rounding: 'Same seed, another computer: rounding differs, so the last digits do too.',
  starting: 'Starting…',
  liveGone: 'The pictures of this run could not be loaded.',
};

/** @typedef {keyof typeof ROOM_PHRASES} RoomPhrase */

/**
 * A phrase with its blanks filled.
 * @param {RoomPhrase} name
 * @param {Record<string, string | number>} [blanks]
 */
export const tell = (name, blanks = {}) => ROOM_PHRASES[name].replace(/\{(\w+)\}/g, (_, blank) => String(blanks[blank] ?? ''));
