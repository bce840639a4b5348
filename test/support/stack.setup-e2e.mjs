import { ensureBuild } from '../../scripts/lib/setup.mjs';
import setUpStack from './stack.setup.mjs';

/** The tests of the whole system run the apps as they are shipped: built. */
export default async function setUpSystem() {
  await ensureBuild({ say: console.error });
  await setUpStack();
}
