/** Stops what `stack.setup.mjs` has started, regardless of the results of the tests. */
export default async function tearDownStack() {
  const stack = globalThis.sluiceTestStack;
  globalThis.sluiceTestStack = undefined;
  await stack?.stop();
}
