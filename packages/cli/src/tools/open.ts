import { spawn } from 'node:child_process';
import type { Source, Webhook } from '@sluice/client';
import { findAmong, LISTENERS } from '../resources/find.js';
import { endpointOf } from '../resources/kinds.js';
import { usageError } from '../session/errors.js';
import type { Session } from '../session/session.js';

const OPENERS: Partial<Record<NodeJS.Platform, string[]>> = { darwin: ['open'], win32: ['cmd', '/c', 'start', ''] };

/** `sluice open [NAME]`: opens the documentation of the API, the endpoint of a source or the address of a webhook in a browser. */
export async function open(session: Session, text: string | undefined): Promise<void> {
  const url = text === undefined ? `${session.access.url}/docs` : await urlOf(session, text);
  if (session.format === 'table') session.print(`${url}\n`);
  else session.item({ url });
  if (!session.isInteractive) return;
  const [program = 'xdg-open', ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  child.on('error', () => session.note(`${program} is not installed: open the address yourself`));
  child.unref();
}

async function urlOf(session: Session, text: string): Promise<string> {
  const { item } = await findAmong(session.sluice, LISTENERS, text);
  const found = 'url' in item ? (item as Webhook).url : await endpointOf(session.sluice, item as Source);
  if (!found) throw usageError(`${text} has no address`);
  return found;
}
