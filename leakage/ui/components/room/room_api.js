// The requests of a room. Each throws a RoomError with the server's sentence.
import { tell } from './room_phrases.js';

const PATIENCE = 15000; // milliseconds

/** @typedef {import('./room_state.js').Who} Who */

/** A request that the server refused, with its sentence; `status` 0: the server was not reached. */
export class RoomError extends Error {
  /**
   * @param {number} status of HTTP
   * @param {string} sentence
   */
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export class RoomApi {
  /** @param {string} base the prefix of all addresses */
  constructor(base) {
    this.root = `${base}/api/class`;
  }

  /**
   * @param {string} method
   * @param {string} address
   * @param {object} [body]
   * @returns {Promise<Response>}
   */
  async ask(method, address, body) {
    const how = body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
    let answer;
    try {
      answer = await fetch(address, { method, ...how, signal: AbortSignal.timeout(PATIENCE) });
    } catch {
      throw new RoomError(0, tell('unreachable'));
    }
    if (!answer.ok) throw new RoomError(answer.status, await sentenceOf(answer));
    return answer;
  }

  /**
   * Open a room; with a code and its key open that room again after a restart of the server.
   * @param {{ lesson: string, beat: number, code?: string, key?: string, round?: number, second?: boolean,
   *   revealed?: boolean, students?: boolean }} body
   * @returns {Promise<{ code: string, key: string, addresses: string[], local: boolean, command: string }>}
   */
  async open(body) {
    return (await this.ask('POST', this.root, body)).json();
  }

  /**
   * The lesson as far as the room has come.
   * @param {string} code
   * @param {string} version see RoomState.lesson
   * @param {string} slot
   * @returns {Promise<import('./room_state.js').RoomLesson>}
   */
  async lesson(code, version, slot) {
    return (await this.ask('GET', `${this.root}/${code}/lesson?${new URLSearchParams({ v: version, slot })}`)).json();
  }

  /**
   * A phone joins, votes, or chooses a cell of the grid.
   * @param {string} code
   * @param {{ slot: string, beat?: number, option?: number, round?: number, cell?: number }} body
   */
  async me(code, body) {
    await this.ask('PUT', `${this.root}/${code}/me`, body);
  }

  /**
   * The teacher goes to a beat, or acts: reveal, hide, again, lock, unlock, clear, students, teacher, close.
   * @param {string} code
   * @param {{ key: string, beat?: number, act?: string }} body
   */
  async lead(code, body) {
    await this.ask('POST', `${this.root}/${code}/lead`, body);
  }

  /**
   * Compute a cell of the grid live. Returns the id of its run.
   * @param {string} code
   * @param {Who & { beat: number, cell: number }} body
   * @returns {Promise<string>}
   */
  async live(code, body) {
    return (await (await this.ask('POST', `${this.root}/${code}/live`, body)).json()).run;
  }

  /**
   * The address of the room's stream.
   * @param {string} code
   * @param {Who} who
   */
  events(code, who) {
    return `${this.root}/${code}/events?${queryOf(who)}`;
  }

  /**
   * The address of a QR code, which holds the address of the phones' page.
   * @param {string} code
   * @param {string} at one of the server's addresses
   */
  qr(code, at) {
    return `${this.root}/${code}/qr.svg?at=${encodeURIComponent(at)}`;
  }

  /**
   * The addresses of a live run: its events, its private pictures, and a frame by its sequence number.
   * @param {string} code
   * @param {string} run
   * @param {Who} who
   * @returns {import('./room_live.js').LiveAddresses}
   */
  run(code, run, who) {
    const folder = `${this.root}/${code}/runs/${encodeURIComponent(run)}`;
    const query = queryOf(who);
    return {
      events: `${folder}/events?${query}`,
      truth: `${folder}/private.png?${query}`,
      frame: (seq) => `${folder}/frames/${seq}.png?${query}`,
    };
  }
}

/** @param {Who} who */
const queryOf = (who) => new URLSearchParams({ ...who }).toString();

/** @param {Response} answer */
async function sentenceOf(answer) {
  const text = await answer.text().catch(() => '');
  return /^\s*[<{]|^\s*$/.test(text) || text.length > 400 ? tell('failed', { status: answer.status }) : text.trim();
}
