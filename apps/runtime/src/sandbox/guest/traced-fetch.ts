// taken before any component could replace it
const { captureStackTrace } = Error;

type Reading = (this: Response, ...args: unknown[]) => Promise<unknown>;

const readings = ['arrayBuffer', 'blob', 'bytes', 'formData', 'json', 'text'];

/**
 * Adds the frames of the caller to errors of `fetch` and of reading a response: Node's have frames of Node only, which do not help an author. The
 * responses are wrapped after the first request, because their class is loaded with it.
 */
export function installTracedFetch(): void {
  const fetch = globalThis.fetch;
  let isWrapped = false;
  globalThis.fetch = function tracedFetch(...args: Parameters<typeof fetch>): Promise<Response> {
    return traced(tracedFetch, async () => {
      const response = await fetch(...args).catch(withRefusal);
      if (!isWrapped) wrapReadings(Object.getPrototypeOf(response) as Record<string, Reading>);
      isWrapped = true;
      return response;
    });
  };
}

function wrapReadings(prototype: Record<string, Reading>): void {
  for (const name of readings) {
    const read = prototype[name]!;
    prototype[name] = function tracedReading(...args) {
      return traced(tracedReading, () => read.apply(this, args));
    };
  }
}

/**
 * Throws the error, whose message names the address and the reason if components may not connect there. Node's is `fetch failed` for every failure;
 * libraries that repeat a request know passing failures by this text, so these keep it.
 */
function withRefusal(error: unknown): never {
  if (error instanceof Error && error.cause instanceof Error && (error.cause as NodeJS.ErrnoException).code === 'EACCES') {
    const message = `${error.message}: ${error.cause.message}`;
    Reflect.set(
      error,
      'stack',
      error.stack?.replace(error.message, () => message),
    );
    Reflect.set(error, 'message', message);
  }
  throw error;
}

async function traced<T>(called: (...args: never[]) => unknown, work: () => Promise<T>): Promise<T> {
  const caller = { stack: '' };
  captureStackTrace(caller, called);
  try {
    return await work();
  } catch (error) {
    // the reason of an AbortSignal can be any value, and has the frames of its creator
    if (error instanceof Error && !error.stack?.includes('component:///'))
      Reflect.set(error, 'stack', error.stack + caller.stack.replace(/^.*/, ''));
    throw error;
  }
}
