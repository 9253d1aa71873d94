// What a page offers that does not lead the open room of this browser: to lead it here, to take its class to this lesson, or to end it.
import { element } from '../dom.js';
import { button } from '../reader/dots.js';
import { word } from './hall_phrases.js';
import { EndRoom } from './room_end.js';

/**
 * @param {import('./room_store.js').Kept} kept
 * @param {{ lesson: string, take: () => void, end: () => void }} how `lesson`: that of this page
 */
export function roomOffer({ code, lesson: there }, { lesson, take, end }) {
  const offer = element('span', 'gle-room-offer');
  const here = there === lesson;
  const press = button('gle-quiet gle-room-take', word(here ? 'leadHere' : 'takeHere', { code }), take);
  press.title = word(here ? 'leadHereHelp' : 'takeHereHelp', { code });
  offer.append(press, new EndRoom({ question: () => word('endOther', { code }), end }).root);
  return offer;
}
