import { UnreachableError } from '@sluice/client';
import { jsonOption } from '../session/option-values.js';
import { findSource } from '../resources/find.js';
import { endpointOf } from '../resources/kinds.js';
import { CliError, usageError } from '../session/errors.js';
import { secretFrom } from '../session/files.js';
import { itemText } from '../session/output.js';
import type { Session } from '../session/session.js';
import { FIXTURE_NAMES, type FixtureRequest, fixtureRequest } from './fixtures.js';

export interface TriggerOptions {
  fixture?: string;
  data?: string;
  secretFile?: string;
}

/** `sluice trigger SOURCE --fixture NAME`: sends a request to the endpoint of a source, as an app would. */
export async function trigger(session: Session, text: string, options: TriggerOptions): Promise<void> {
  const { isUnsigned, ...request } = await requestOf(session, options);
  const source = await findSource(session.sluice, text, { exactly: !session.isInteractive });
  const endpoint = await endpointOf(session.sluice, source);
  if (!endpoint) throw usageError(`${source.name_slug} has no HTTP endpoint; use sluice run or sluice publish`);
  const { status, ok, body } = await responseTo(endpoint, request);
  if (session.format === 'table') session.print(`${status} ${body}`.trimEnd() + '\n');
  else session.print(itemText({ status, body }, session.format));
  const hint = status === 401 && isUnsigned ? ': the request was not signed; set SLUICE_FIXTURE_SECRET, or use --secret-file' : '';
  if (!ok) throw new CliError(`the endpoint returned ${status}${hint}`);
}

async function responseTo(endpoint: string, request: FixtureRequest): Promise<{ status: number; ok: boolean; body: string }> {
  try {
    const response = await fetch(endpoint, { method: 'POST', ...request });
    return { status: response.status, ok: response.ok, body: await response.text() };
  } catch (error) {
    throw new UnreachableError(`${endpoint} cannot be reached: ${((error as Error).cause as Error | undefined)?.message ?? String(error)}`);
  }
}

async function requestOf(
  session: Session,
  { fixture, data, secretFile }: TriggerOptions,
): Promise<FixtureRequest & { isUnsigned?: boolean }> {
  if (secretFile !== undefined && fixture === undefined) throw usageError('--secret-file signs a fixture: it needs --fixture');
  if (data !== undefined && fixture === undefined)
    return {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(await jsonOption('--data', data, () => session.stdin())),
    };
  const secret = secretFrom(secretFile, session.env.SLUICE_FIXTURE_SECRET);
  if ((fixture === undefined) === (data === undefined))
    throw usageError(`one of --data and --fixture is required; fixtures are ${FIXTURE_NAMES.join(', ')}`);
  const request = fixtureRequest(fixture ?? '', secret);
  if (!request) throw usageError(`there is no fixture ${fixture}; fixtures are ${FIXTURE_NAMES.join(', ')}`);
  return { ...request, isUnsigned: secret === undefined };
}
