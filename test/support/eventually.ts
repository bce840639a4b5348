/** Tries until the check doesn't throw; then answers what it answered. After the time the last error is thrown. */
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
