/** What is wrong with the environment, all of it at once: each line names the variable and what it should be. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: string[]) {
    super(problems.join('\n'));
  }
}

type Env = Record<string, string | undefined>;

/** Reads variables and collects what is wrong with them. An empty variable is as if absent. */
export class Environment {
  private readonly problems: string[] = [];

  constructor(private readonly env: Env) {}

  /** Text; without a default it's required. */
  text(name: string, fallback?: string): string {
    const value = this.env[name] || fallback;
    if (value === undefined) this.problems.push(`${name} is required`);
    return value ?? '';
  }

  optional(name: string): string | undefined {
    return this.env[name] || undefined;
  }

  /** A whole number within bounds, both inclusive. */
  integer(name: string, fallback: number, { min = 0, max = Number.MAX_SAFE_INTEGER } = {}): number {
    const text = this.env[name] || undefined;
    if (text === undefined) return fallback;
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    this.problems.push(`${name} must be a whole number from ${min} to ${max}, not "${text}"`);
    return fallback;
  }

  port(name: string, fallback: number): number {
    return this.integer(name, fallback, { min: 1, max: 65_535 });
  }

  boolean(name: string, fallback: boolean): boolean {
    const text = this.env[name] || undefined;
    if (text === undefined) return fallback;
    if (text === 'true' || text === 'false') return text === 'true';
    this.problems.push(`${name} must be true or false, not "${text}"`);
    return fallback;
  }

  /** One of a few words. */
  choice<T extends string>(name: string, fallback: T, words: readonly T[]): T {
    const text = (this.env[name] || fallback) as T;
    if (words.includes(text)) return text;
    this.problems.push(`${name} must be one of ${words.join(', ')}, not "${text}"`);
    return fallback;
  }

  /** Comma-separated texts, trimmed. */
  list(name: string, fallback: string): string[] {
    return this.text(name, fallback)
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  }

  /** Comma-separated durations such as `5s, 5m, 2h`, in ms. */
  durations(name: string, fallback: string): number[] {
    return this.list(name, fallback).map((text) => {
      const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
      if (!match) {
        this.problems.push(`${name} must list durations such as 5s or 30m, not "${text}"`);
        return 0;
      }
      return Number(match[1]) * { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] as 'ms' | 's' | 'm' | 'h' | 'd'];
    });
  }

  /** Lets a caller with a rule of its own report what is wrong. */
  problem(sentence: string): void {
    this.problems.push(sentence);
  }

  /** Throws ConfigError when anything was wrong. */
  finish(): void {
    if (this.problems.length > 0) throw new ConfigError(this.problems);
  }
}

/** Reads a configuration once. Throws ConfigError naming every bad variable. */
export function readConfig<T>(read: (env: Environment) => T, env: Env = process.env): T {
  const environment = new Environment(env);
  const config = read(environment);
  environment.finish();
  return config;
}
