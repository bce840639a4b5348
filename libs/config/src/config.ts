import { readFileSync } from 'node:fs';
import { BadValue, type Variable } from './variable.js';

/** Everything that is wrong with the environment: each line names a variable and states what it must be. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: string[]) {
    super(problems.join('\n'));
  }
}

type Env = Record<string, string | undefined>;
type Schema = Record<string, Variable<unknown>>;
type Values<S extends Schema> = { readonly [Field in keyof S]: S[Field] extends Variable<infer T> ? T : never };

/** A part of the configuration: a class whose instances hold the values of its variables. The class is also its injection token. */
export interface ConfigClass<T extends object = object> {
  new (): T;
  /** The variables that it reads, for the documentation. */
  readonly variables: readonly Variable<unknown>[];
  /**
   * Reads the environment.
   * @throws ConfigError naming every bad variable
   */
  read<Self extends object>(this: new () => Self, env?: Env): Self;
}

/**
 * Declares a part of the configuration:
 *
 *     class GatewayConfig extends Config({ port: port('SLUICE_HTTP_PORT', { fallback: 3000, description: '…' }) }) {}
 *     GatewayConfig.read().port
 *
 * A class may add getters for what it derives, and a method `problems(): string[]` for rules about several variables.
 */
export function Config<S extends Schema>(schema: S): ConfigClass<Values<S>> {
  class Part {
    static readonly variables = Object.values(schema);

    static read(env: Env = process.env): object {
      const problems: string[] = [];
      const part = new this();
      for (const [field, variable] of Object.entries(schema)) {
        try {
          Object.assign(part, { [field]: variable.parse(textOf(variable, env) ?? variable.fallback) });
        } catch (error) {
          problems.push(problemOf(variable, env, error as Error));
        }
      }
      if (problems.length === 0) problems.push(...((part as { problems?(): string[] }).problems?.() ?? []));
      if (problems.length > 0) throw new ConfigError(problems);
      return part;
    }
  }
  return Part as unknown as ConfigClass<Values<S>>;
}

/** Reads several parts. Throws one ConfigError that names every bad variable of all of them. */
export function checkConfig(parts: readonly ConfigClass[], env: Env = process.env): void {
  const problems = parts.flatMap((part) => {
    try {
      part.read(env);
      return [];
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
  });
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
}

/** The text of the variable; undefined if it is absent or empty. A secret may be in a file. */
function textOf({ name, secret }: Variable<unknown>, env: Env): string | undefined {
  const given = env[name] || undefined;
  const file = secret ? env[`${name}_FILE`] || undefined : undefined;
  if (file === undefined) return given;
  if (given !== undefined) throw new BadValue(`and ${name}_FILE are both set; set only one of them`);
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '') || undefined;
  } catch (error) {
    throw new BadValue(`cannot be read from ${name}_FILE: ${(error as Error).message}`);
  }
}

function problemOf(variable: Variable<unknown>, env: Env, error: Error): string {
  const shown = variable.secret || !env[variable.name] ? '' : `, not "${env[variable.name]}"`;
  return `${variable.name} ${error.message}${shown}`;
}
