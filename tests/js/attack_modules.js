// The modules of the attacks, from their own folder, or from a copy with a fault.
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const ATTACK = fileURLToPath(new URL('../../leakage/ui/components/attack', import.meta.url));

/**
 * The modules of the attacks, from a folder.
 * @param {string} folder
 */
export async function modulesOf(folder) {
  /** @type {(name: string) => Promise<any>} */
  const load = (name) => import(pathToFileURL(join(folder, `${name}.js`)).href);
  return {
    .../** @type {typeof import('../../leakage/ui/components/attack/sha256.js')} */ (await load('sha256')),
    .../** @type {typeof import('../../leakage/ui/components/attack/random.js')} */ (await load('random')),
    .../** @type {typeof import('../../leakage/ui/components/attack/weights.js')} */ (await load('weights')),
    .../** @type {typeof import('../../leakage/ui/components/attack/kernels.js')} */ (await load('kernels')),
    .../** @type {typeof import('../../leakage/ui/components/attack/network.js')} */ (await load('network')),
    .../** @type {typeof import('../../leakage/ui/components/attack/plans.js')} */ (await load('plans')),
    .../** @type {typeof import('../../leakage/ui/components/attack/distances.js')} */ (await load('distances')),
    .../** @type {typeof import('../../leakage/ui/components/attack/label_rules.js')} */ (await load('label_rules')),
    .../** @type {typeof import('../../leakage/ui/components/attack/last_layer.js')} */ (await load('last_layer')),
    .../** @type {typeof import('../../leakage/ui/components/attack/label_probes.js')} */ (await load('label_probes')),
    .../** @type {typeof import('../../leakage/ui/components/attack/client.js')} */ (await load('client')),
    .../** @type {typeof import('../../leakage/ui/components/attack/received.js')} */ (await load('received')),
    .../** @type {typeof import('../../leakage/ui/components/attack/matching.js')} */ (await load('matching')),
    .../** @type {typeof import('../../leakage/ui/components/attack/lbfgs.js')} */ (await load('lbfgs')),
    .../** @type {typeof import('../../leakage/ui/components/attack/line_search.js')} */ (await load('line_search')),
    .../** @type {typeof import('../../leakage/ui/components/attack/idlg.js')} */ (await load('idlg')),
    .../** @type {typeof import('../../leakage/ui/components/attack/inverting_gradients.js')} */ (await load('inverting_gradients')),
    .../** @type {typeof import('../../leakage/ui/components/attack/linear_layer.js')} */ (await load('linear_layer')),
    .../** @type {typeof import('../../leakage/ui/components/attack/protections.js')} */ (await load('protections')),
    .../** @type {typeof import('../../leakage/ui/components/attack/imitations.js')} */ (await load('imitations')),
    .../** @type {typeof import('../../leakage/ui/components/attack/number_formats.js')} */ (await load('number_formats')),
  };
}

/** @typedef {Awaited<ReturnType<typeof modulesOf>>} Modules */
