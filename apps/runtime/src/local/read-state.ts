import { access, constants, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Invalid, isObject } from '#contracts';
import type { LocalState } from './local-source.js';

/** Reads the state from the file of `--state`. Without a file, the state is empty: the file is created after the runs. Throws Invalid, also if it could not be written then. */
export async function readState(file: string | undefined): Promise<LocalState> {
  const fresh: LocalState = { db: {}, dedupe: {} };
  if (file === undefined) return fresh;
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new Invalid(`--state: ${error.message}`);
  });
  await access(text === undefined ? dirname(file) : file, constants.W_OK).catch((error: Error) => {
    throw new Invalid(`--state: ${file} cannot be written: ${error.message}`);
  });
  const state = { ...fresh, ...objectIn(text ?? '{}', file) };
  if (![state.db, state.dedupe].every(isObject)) throw new Invalid(`--state: db and dedupe of ${file} must be JSON objects`);
  return state;
}

function objectIn(text: string, file: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Invalid(`--state: ${file} is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(value)) throw new Invalid(`--state: ${file} must contain a JSON object`);
  return value;
}
