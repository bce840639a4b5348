import { spawn } from 'node:child_process';
import type { Source, Webhook } from '@sluice/client';
import { findAmong, LISTENERS } from '../resources/find.js';
import { endpointOf } from '../resources/kinds.js';
import { CliError, usageError } from '../session/errors.js';
import type { Session } from '../session/session.js';

/** The program that opens an address, with its arguments. Not `cmd /c start`, which would run the part of an address that follows `&`. */
export const openerOf = (platform: NodeJS.Platform): [program: string, ...args: string[]] =>
  platform === 'win32' ? ['rundll32', 'url.dll,FileProtocolHandler'] : platform === 'darwin' ? ['open'] : ['xdg-open'];

/** `sluice open [NAME]`: opens the documentation of the API, the endpoint of a source or the address of a webhook in a browser. */
export async function open(session: Session, text: string | undefined): Promise<void> {
  const url = text === undefined ? `${session.access.url}/docs` : await urlOf(session, text);
  if (session.format === 'table') session.print(`${url}\n`);
  else session.item({ url });
  if (!session.isInteractive) return;
  if (!/^https?:\/\//i.test(url)) throw new CliError(`${url} is not an address of the web: it is not opened`);
  const [program, ...args] = openerOf(process.platform);
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
