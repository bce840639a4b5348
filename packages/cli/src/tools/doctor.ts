import { statSync } from 'node:fs';
import { CliError, EXIT, explain, exitCodeOf } from '../session/errors.js';
import { printable, styled } from '../session/output.js';
import { endpointOf, SOURCES } from '../resources/kinds.js';
import type { Session } from '../session/session.js';

interface Check {
  check: string;
  ok: boolean;
  detail: string;
}

const MOST_SKEW_MS = 60_000;

/** `sluice doctor`: checks what the command line needs, step by step. Exits like the first step that fails. */
export async function doctor(session: Session): Promise<void> {
  const checks: Check[] = [];
  let code = 0;
  const check = async (name: string, test: () => Promise<string> | string): Promise<boolean> => {
    try {
      checks.push({ check: name, ok: true, detail: await test() });
      return true;
    } catch (error) {
      code ||= exitCodeOf(error);
      checks.push({ check: name, ok: false, detail: explain(error) });
      return false;
    }
  };
  await check('Node', nodeVersion);
  await check('profiles', () => readableByOthers(session.profiles.path));
  const hasAccess = await check('API key', () => `from ${session.access.from}, for ${session.access.url}`);
  if (hasAccess && (await check('server', () => serverOf(session)))) {
    await check('account', async () => (await session.sluice.getCurrentUser()).data.email);
    await check('endpoints', () => endpoints(session));
  }
  if (session.format === 'table') {
    for (const { check: name, ok, detail } of checks)
      session.printStyled(`${styled(ok ? 'green' : 'red', ok ? 'ok    ' : 'failed', process.stdout)}  ${name}: ${printable(detail)}\n`);
  } else session.list(checks, []);
  if (code > 0) throw new CliError('not everything works', code);
}

function nodeVersion(): string {
  if (Number(process.versions.node.split('.')[0]) < 22)
    throw new CliError(`this is Node ${process.versions.node}; 22 or newer is required`);
  return process.versions.node;
}

function readableByOthers(path: string): string {
  const entry = statSync(path, { throwIfNoEntry: false });
  if (!entry) return 'none';
  if (process.platform !== 'win32' && (entry.mode & 0o077) !== 0) throw new CliError(`${path} can be read by others: chmod 600 ${path}`);
  return path;
}

async function serverOf(session: Session): Promise<string> {
  const response = await session.request('/openapi.json');
  const { info } = (await response.json()) as { info: { title: string; version: string } };
  const skew = Date.now() - Date.parse(response.headers.get('date') ?? '');
  if (Math.abs(skew) > MOST_SKEW_MS)
    throw new CliError(`the clocks differ by ${Math.round(Math.abs(skew) / 1000)} s: signatures of webhooks will not be accepted`);
  return `${info.title} ${info.version}`;
}

async function endpoints(session: Session): Promise<string> {
  for await (const { configured_props } of SOURCES.list(session.sluice)) {
    const endpoint = endpointOf(configured_props);
    if (endpoint === undefined) continue;
    const { origin } = new URL(endpoint);
    const response = await fetch(origin, { signal: AbortSignal.timeout(10_000) }).catch(() => {
      throw new CliError(`${origin} cannot be reached: apps cannot send requests to your sources (SLUICE_ENDPOINTS_URL)`, EXIT.unreachable);
    });
    await response.body?.cancel();
    return origin;
  }
  return 'no source has one';
}
