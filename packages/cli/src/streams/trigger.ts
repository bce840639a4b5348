import { text as readAll } from 'node:stream/consumers';
import { UnreachableError } from '@sluice/client';
import { dataOption } from '../session/option-values.js';
import { findSource } from '../resources/find.js';
import { endpointOf } from '../resources/kinds.js';
import { CliError, usageError } from '../session/errors.js';
import { secretFrom } from '../session/files.js';
import { itemText } from '../session/output.js';
import type { Session } from '../session/session.js';
import { FIXTURE_NAMES, fixtureRequest } from './fixtures.js';
import { post, type PostRequest } from './post.js';

export interface TriggerOptions {
  fixture?: string;
  data?: string;
  secretFile?: string;
}

/** As the client waits for Sluice: a run that responds may take half a minute. */
const RESPONSE_MS = 60_000;

/** `sluice trigger SOURCE --fixture NAME`: sends a request to the endpoint of a source, as an app would. */
export async function trigger(session: Session, text: string, options: TriggerOptions): Promise<void> {
  const { isUnsigned, ...request } = await requestOf(session, options);
  const source = await findSource(session.sluice, text, { exactly: !session.isInteractive });
  const endpoint = await endpointOf(session.sluice, source);
  if (!endpoint) throw usageError(`${source.name_slug} has no HTTP endpoint; use sluice run or sluice publish`);
  const { status, location, body } = await responseTo(endpoint, request);
  if (session.format === 'table') session.print(`${status} ${body}`.trimEnd() + '\n');
  else session.print(itemText({ status, body }, session.format));
  const redirect =
    location !== undefined && status >= 300 && status < 400 ? `, a redirect to ${location}, which trigger does not follow` : '';
  const hint = status === 401 && isUnsigned ? ': the request was not signed; set SLUICE_FIXTURE_SECRET, or use --secret-file' : '';
  if (status < 200 || status >= 300) throw new CliError(`the endpoint returned ${status}${redirect}${hint}`);
}

/** The response of the endpoint itself: apps follow no redirect, and another server must not get the signature or the secret. */
async function responseTo(endpoint: string, request: PostRequest): Promise<{ status: number; location?: string; body: string }> {
  try {
    return await post(endpoint, request, RESPONSE_MS, async (response) => ({
      status: response.statusCode!,
      location: response.headers.location,
      body: await readAll(response),
    }));
  } catch (error) {
    throw new UnreachableError(`${endpoint} cannot be reached, or has not responded completely: ${(error as Error).message}`);
  }
}

async function requestOf(session: Session, { fixture, data, secretFile }: TriggerOptions): Promise<PostRequest & { isUnsigned?: boolean }> {
  if (secretFile !== undefined && fixture === undefined) throw usageError('--secret-file signs a fixture: it needs --fixture');
  if (data !== undefined && fixture === undefined)
    return {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(await dataOption(data, () => session.stdin())),
    };
  const secret = secretFrom(secretFile, session.env.SLUICE_FIXTURE_SECRET);
  if ((fixture === undefined) === (data === undefined))
    throw usageError(`one of --data and --fixture is required; fixtures are ${FIXTURE_NAMES.join(', ')}`);
  const request = fixtureRequest(fixture ?? '', secret);
  if (!request) throw usageError(`there is no fixture ${fixture}; fixtures are ${FIXTURE_NAMES.join(', ')}`);
  return { ...request, isUnsigned: secret === undefined };
}
