/** The result of the work, or the error `late` if it takes longer. The work itself is not ended. */
export async function within<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  const timer = Promise.withResolvers<never>();
  const timeout = setTimeout(() => timer.reject(late()), ms);
  try {
    return await Promise.race([work, timer.promise]);
  } finally {
    clearTimeout(timeout);
  }
}
