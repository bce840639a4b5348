import { ensureBuild } from '../../scripts/lib/setup.mjs';
import setUpStack from './stack.setup.mjs';

/** The tests of the whole system run the apps as they are shipped: built. An instance that runs already needs neither a build nor stores. */
export default async function setUpSystem() {
  if (process.env.SLUICE_E2E_TARGET) return;
  await ensureBuild({ say: console.error });
  await setUpStack();
}
