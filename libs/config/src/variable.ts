/** One environment variable: its documentation, and how its text is parsed. */
export interface Variable<T> {
  readonly name: string;
  /** One or two sentences for the operator. */
  readonly description: string;
  /** The default, as one would write it; undefined if there is none. */
  readonly fallback?: string;
  /** The values that it accepts, as Markdown; undefined where the description names them. */
  readonly values?: string;
  /** Its value is never shown, and it can be given as a file, named by `<NAME>_FILE`. */
  readonly secret: boolean;
  /**
   * @param text undefined where the variable is absent or empty and has no default
   * @throws BadValue
   */
  parse(text: string | undefined): T;
}

/** Why a text is not a value of its variable. Completes a sentence that begins with the variable's name. */
export class BadValue extends Error {
  override readonly name = 'BadValue';
}

interface Description {
  description: string;
  secret?: boolean;
}

/** A variable with a custom parser. parse: throws an Error whose message completes a sentence that begins with the variable's name. */
export function variable<T>(
  name: string,
  { description, secret = false, fallback, values, parse }: Description & { fallback?: string; values?: string; parse(text: string): T },
): Variable<T> {
  return {
    name,
    description,
    secret,
    fallback,
    values,
    parse: (text) => {
      if (text === undefined) throw new BadValue('is required');
      return parse(text);
    },
  };
}

/** An optional variable: undefined if absent. */
export function optional<T>(inner: Variable<T>): Variable<T | undefined> {
  return { ...inner, fallback: undefined, parse: (text) => (text === undefined ? undefined : inner.parse(text)) };
}

/** Any text; required where there is no default. */
export const text = (name: string, options: Description & { fallback?: string }): Variable<string> =>
  variable(name, { ...options, parse: (value) => value });

/** A whole number within bounds, both inclusive. */
export function integer(
  name: string,
  { min = 0, max = Number.MAX_SAFE_INTEGER, fallback, ...options }: Description & { fallback: number; min?: number; max?: number },
): Variable<number> {
  const isOpen = max === Number.MAX_SAFE_INTEGER;
  const parse = (value: string): number => {
    const number = Number(value);
    if (value.trim() !== '' && Number.isInteger(number) && number >= min && number <= max) return number;
    throw new BadValue(`must be a whole number ${isOpen ? `of at least ${min}` : `from ${min} to ${max}`}`);
  };
  return variable(name, { ...options, fallback: String(fallback), values: isOpen ? `at least ${min}` : `${min} to ${max}`, parse });
}

export const port = (name: string, options: Description & { fallback: number }): Variable<number> =>
  integer(name, { ...options, min: 1, max: 65_535 });

export function boolean(name: string, { fallback, ...options }: Description & { fallback: boolean }): Variable<boolean> {
  const parse = (value: string): boolean => {
    if (value === 'true' || value === 'false') return value === 'true';
    throw new BadValue('must be true or false');
  };
  return variable(name, { ...options, fallback: String(fallback), values: listed(['true', 'false']), parse });
}

const listed = (words: readonly string[]): string => words.map((word) => `\`${word}\``).join(', ');

/** One of a few words, in any case. */
export function choice<const T extends string>(
  name: string,
  { words, ...options }: Description & { words: readonly T[]; fallback: NoInfer<T> },
): Variable<T> {
  const parse = (value: string): T => {
    const word = words.find((each) => each === value.toLowerCase());
    if (word !== undefined) return word;
    throw new BadValue(`must be one of ${words.join(', ')}`);
  };
  return variable(name, { ...options, values: listed(words), parse });
}

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Whole: `1.005 * 1000` is not. */
function milliseconds(value: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value);
  return match ? Math.round(Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]) : undefined;
}

/** Dates that are further away cannot be computed. */
const LONGEST = '1000d';
/** Timers of Node that are longer than 24 days end at once. */
const LONGEST_TIMER = '20d';

/** A duration such as `5s` or `30m`, in ms. */
export function duration(
  name: string,
  { min, ...options }: Description & { fallback: string; min?: string },
  longest = LONGEST,
): Variable<number> {
  const parse = (value: string): number => {
    const ms = milliseconds(value);
    if (ms === undefined) throw new BadValue('must be a duration such as 500ms, 5s, 30m, 2h or 5d');
    if (min !== undefined && ms < milliseconds(min)!) throw new BadValue(`must be at least ${min}`);
    if (ms > milliseconds(longest)!) throw new BadValue(`must be at most ${longest}`);
    return ms;
  };
  return variable(name, { ...options, values: min === undefined ? `at most ${longest}` : `${min} to ${longest}`, parse });
}

/** A duration after which a timer ends, in ms. */
export const timeout = (name: string, options: Description & { fallback: string; min?: string }): Variable<number> =>
  duration(name, options, LONGEST_TIMER);

/** Comma-separated durations, in ms. */
export function durations(name: string, options: Description & { fallback: string }): Variable<number[]> {
  const parse = (value: string): number[] => {
    const parts = value.split(',').map((part) => milliseconds(part.trim()));
    if (parts.includes(undefined)) throw new BadValue('must list durations such as 5s,30m,2h');
    if (parts.some((ms) => ms! > milliseconds(LONGEST)!)) throw new BadValue(`must list durations of at most ${LONGEST}`);
    return parts as number[];
  };
  return variable(name, { ...options, values: `each at most ${LONGEST}`, parse });
}
