// The parts of the attacks beside what the program computes.
import { test } from 'node:test';
import { CHECKS } from './attack_checks.js';
import { ATTACK, modulesOf } from './attack_modules.js';

const modules = await modulesOf(ATTACK);
for (const [name, check] of Object.entries(CHECKS)) test(`${name}: as the program computes`, () => check(modules));
