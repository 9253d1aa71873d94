// Plays the order that stands as JSON on the standard input, with pictures as lists, and prints the last message without its pictures.
import { readFileSync } from 'node:fs';
import { play } from '../../leakage/ui/components/attack/attack_worker.js';

const order = JSON.parse(readFileSync(0, 'utf8'));
let last = null;
for (const message of play({ ...order, pictures: Float32Array.from(order.pictures) })) last = message;
console.log(JSON.stringify({ ...last, pictures: undefined }));
