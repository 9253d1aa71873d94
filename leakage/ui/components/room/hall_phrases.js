// The texts of the teacher's side of a room, as data: apart from those of the phones, which load none of these.

export const HALL_PHRASES = {
  open: 'Open a room',
  openHelp: 'Let a class follow on its phones; while presenting: o',
  takeHere: 'Take the class to this lesson',
  takeHereHelp: 'Room {code}: its code and its phones stay, the votes and the dots of the other lesson are forgotten.',
  leadHere: 'Lead room {code} here',
  leadHereHelp: 'Room {code} is open. The tab that led it before stops leading.',
  waiting: 'Room {code} is open. Press o to take its phones along.',
  taken: 'Room {code} is at this lesson now.',
  superseded: 'Another tab leads room {code} now.',
  opening: 'Opening a room …',
  title: 'Room {code}',
  show: 'Room {code}',
  byAddress: 'Open this address on a phone',
  byCode: 'and type this code',
  qr: 'QR code of the address {address}',
  another: 'Another address of this computer',
  local: 'This server listens on this computer only: phones cannot reach it. Stop it, and start it again for a class with this command:',
  noAddress: 'No address was found under which phones reach this computer. Is it in a network?',
  joinedNone: 'No phone has joined yet.',
  joinedOne: '1 phone has joined.',
  joined: '{n} phones have joined.',
  phone: '1 phone',
  phones: '{n} phones',
  none:
    'Nobody has joined for 20 seconds. The usual cause is a network that keeps devices apart, such as eduroam. Two ways out: let a phone open a ' +
    'hotspot, and join it with this computer and all phones. Or count hands, without a network: end the room, then press Shift and a digit.',
  lock: 'Lock the door',
  unlock: 'Unlock the door',
  locked: 'Locked: nobody else can join.',
  clear: 'Forget these answers',
  clearHelp: 'Forget the votes or the dots of this part of the lesson',
  forgotten: 'Forgotten.',
  back: 'Back to the lesson',
  keepTab: 'Keep this tab open, or come back to this page in the same browser.',
  students: 'Students may compute live',
  end: 'End the room',
  endSure: 'Really end it for {phones}?',
  endOther: 'Really end room {code}?',
  endIt: 'End it',
  keepIt: 'Keep it',
  ended: 'The room has ended.',
  gone: 'The server does not answer. Trying again …',
  restarted: 'The server was started again: votes, dots and live runs of other parts are gone.',
  unreachable: 'The server did not answer. Try again.',
  choices: 'What the class has tried',
  choicesNone: 'Each phone’s choice becomes a dot here.',
  chosenBy: 'The dots of {phones}. Press one to see its pictures.',
  medians: 'A short line is the median of at least five dots.',
  dots: '{values}: {psnr}, {word}, {phones}',
  notRecorded: '{phones} chose settings without a recorded result.',
  phonesHead: 'phones',
  tableOf: 'The choices of the class as numbers',
  computeOne: 'Compute these settings live',
  computing: 'Asking …',
};

/** @typedef {keyof typeof HALL_PHRASES} HallPhrase */

/**
 * A phrase with its blanks filled.
 * @param {HallPhrase} name
 * @param {Record<string, string | number>} [blanks]
 */
export const word = (name, blanks = {}) => HALL_PHRASES[name].replace(/\{(\w+)\}/g, (_, blank) => String(blanks[blank] ?? ''));

/** @param {number} n */
export const phones = (n) => (n === 1 ? word('phone') : word('phones', { n }));
