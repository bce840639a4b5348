/** Repeats the check until it does not throw, and returns its result. After the time limit, throws the last error. */
export async function eventually<T>(check: () => T | Promise<T>, { withinMs = 15_000 } = {}): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
