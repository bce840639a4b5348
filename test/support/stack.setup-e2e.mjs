import { ensureBuild } from '../../scripts/setup/setup.mjs';
import setUpStack from './stack.setup.mjs';

/** The e2e tests run the built apps, as they are shipped. A running instance needs neither a build nor stores. */
export default async function setUpSystem() {
  if (process.env.SLUICE_E2E_TARGET) return;
  await ensureBuild({ say: console.error });
  await setUpStack();
}
