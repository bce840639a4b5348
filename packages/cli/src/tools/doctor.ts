import { execFile, type ExecFileException } from 'node:child_process';
import { type Stats, statSync } from 'node:fs';
import { promisify } from 'node:util';
import { CliError, EXIT, explain, exitCodeOf } from '../session/errors.js';
import { printable, styled } from '../session/output.js';
import { sameServer } from '../session/profiles.js';
import { endpointOf, SOURCES } from '../resources/kinds.js';
import type { Session } from '../session/session.js';
import { apiDocument } from './api-document.js';

interface Check {
  check: string;
  ok: boolean;
  /** Whether people should look at it, although nothing has failed. */
  warning?: true;
  detail: string;
}

type Result = string | Pick<Check, 'warning' | 'detail'>;

const MOST_SKEW_MS = 60_000;
const RESPONSE_MS = 10_000;
/** Counting takes about a second. The launcher waits longer for a Kafka that does not respond. */
const COUNTED_WITHIN_MS = 15_000;

/** `sluice doctor`: checks what the command line needs, step by step. Exits like the first step that fails. */
export async function doctor(unlimited: Session): Promise<void> {
  // that a server does not respond is a result
  const session = unlimited.limited({ retries: 0, timeoutMs: RESPONSE_MS });
  const checks: Check[] = [];
  let code = 0;
  const add = (done: Check): boolean => {
    checks.push(done);
    if (session.format === 'table') session.printStyled(lineOf(done));
    return done.ok;
  };
  const check = async (name: string, test: () => Promise<Result> | Result): Promise<boolean> => {
    try {
      const result = await test();
      return add({ check: name, ok: true, ...(typeof result === 'string' ? { detail: result } : result) });
    } catch (error) {
      code ||= exitCodeOf(error);
      return add({ check: name, ok: false, detail: explain(error) });
    }
  };
  await check('Node', () => process.versions.node);
  await check('profiles', () => readableByOthers(session.profiles.path));
  const hasAccess = await check('API key', () => `from ${session.access.from}, for ${session.access.url}`);
  if (hasAccess && (await check('server', () => serverOf(session)))) {
    await check('account', async () => (await session.sluice.getCurrentUser()).data.email);
    await check('endpoints', () => endpoints(session));
  }
  if (hasAccess) {
    const launcher = launcherOf(session);
    if (launcher !== undefined) await check('dead letters', () => deadLetters(launcher));
    else session.note('sluice dead-letters, where Sluice is installed, counts the records that could not be handled');
  }
  if (session.format !== 'table') session.list(checks, []);
  if (code > 0) throw new CliError('not everything works', code);
}

function lineOf({ check, ok, warning, detail }: Check): string {
  const [style, word] = !ok ? (['red', 'failed'] as const) : warning ? (['yellow', 'look'] as const) : (['green', 'ok'] as const);
  return `${styled(style, word.padEnd(6), process.stdout)}  ${check}: ${printable(detail)}\n`;
}

function readableByOthers(path: string): string {
  const entry = statOf(path);
  if (!entry) return 'none';
  if (process.platform !== 'win32' && (entry.mode & 0o077) !== 0) throw new CliError(`${path} can be read by others: chmod 600 ${path}`);
  return path;
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new CliError(`${path} cannot be read: ${(error as Error).message}`);
  }
}

async function serverOf(session: Session): Promise<string> {
  const { document, time } = await apiDocument(session);
  const skew = Date.now() - time;
  if (Math.abs(skew) > MOST_SKEW_MS)
    throw new CliError(`the clocks differ by ${Math.round(Math.abs(skew) / 1000)} s: signatures of webhooks will not be accepted`);
  return `${document.info.title} ${document.info.version}`;
}

async function endpoints(session: Session): Promise<string> {
  for await (const source of SOURCES.list(session.sluice)) {
    const endpoint = await endpointOf(session.sluice, source);
    if (endpoint === undefined) continue;
    const { origin } = new URL(endpoint);
    const response = await fetch(origin, { redirect: 'manual', signal: AbortSignal.timeout(RESPONSE_MS) }).catch(() => {
      throw new CliError(`${origin} cannot be reached: apps cannot send requests to your sources (SLUICE_ENDPOINTS_URL)`, EXIT.unreachable);
    });
    await response.body?.cancel();
    return origin;
  }
  return 'no source has one';
}

/** The program that runs operators' commands on the instance in use: only where this clone runs it. */
function launcherOf({ access, env }: Session): string | undefined {
  const { SLUICE_LOCAL_URL: url, SLUICE_LOCAL_LAUNCHER: launcher } = env;
  return url !== undefined && sameServer(url, access.url) ? launcher : undefined;
}

/** The records that services have set aside, such as those of a producer that sets no key: nobody else is informed of them. */
export async function deadLetters(launcher: string, withinMs = COUNTED_WITHIN_MS): Promise<Result> {
  const args = [launcher, 'admin', 'dead-letters', '--since', '24h', '--output', 'json'];
  const options = { timeout: withinMs };
  const { stdout } = await promisify(execFile)(process.execPath, args, options).catch((error: ExecFileException) => {
    if (error.killed) throw new CliError(`they cannot be counted within ${withinMs / 1000} s: Kafka may not respond`);
    throw new CliError(`they cannot be counted: ${error.stderr?.trim() || error.message}`);
  });
  const counts = new Map<string, number>();
  for (const { service, topic, count } of JSON.parse(stdout) as { service: string; topic: string; count: number }[]) {
    const what = `of ${topic} in ${service}`;
    counts.set(what, (counts.get(what) ?? 0) + count);
  }
  if (counts.size === 0) return 'none in the last 24 h';
  const list = [...counts].map(([what, count]) => `${count} ${what}`).join(', ');
  return { warning: true, detail: `in the last 24 h ${list}; sluice dead-letters lists them with their reasons` };
}
