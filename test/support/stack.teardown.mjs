/** Jest exits much sooner, and scripts/stories/run-jest.mjs kills it only later. */
const EXIT_MS = 8000;

/** Stops what `stack.setup.mjs` has started, regardless of the results of the tests. */
export default async function tearDownStack() {
  setTimeout(() => console.error(`Jest does not exit because of: ${openHandles().join(', ')}`), EXIT_MS).unref();
  const stack = globalThis.sluiceTestStack;
  globalThis.sluiceTestStack = undefined;
  await stack?.stop();
}

/** The resources that keep this process running: their types, and the other ends of connections. */
function openHandles() {
  const sockets = process._getActiveHandles().filter((handle) => handle.remoteAddress && handle.hasRef?.() !== false);
  return [...process.getActiveResourcesInfo(), ...sockets.map(({ remoteAddress, remotePort }) => `${remoteAddress}:${remotePort}`)];
}
