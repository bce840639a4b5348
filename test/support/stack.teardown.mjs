/** Stops what `stack.setup.mjs` has started; whatever has become of the tests. */
export default async function tearDownStack() {
  const stack = globalThis.sluiceTestStack;
  globalThis.sluiceTestStack = undefined;
  await stack?.stop();
}
