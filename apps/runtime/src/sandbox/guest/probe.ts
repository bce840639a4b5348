import { readdirSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';

// Started in a jail before it is used: prints what it reached and should not have. The arguments: a port that listens on this machine, and a file
// and a process of the parent's.
const [port, file, parent] = process.argv.slice(2);

const reached: string[] = [];

function attempt(what: string, action: () => void): void {
  try {
    action();
    reached.push(what);
  } catch {
    return;
  }
}

attempt('files', () => readFileSync(file!));
attempt('processes', () => readdirSync(`/proc/${parent}`));
attempt('signals', () => process.kill(Number(parent), 0));

const socket = createConnection({ host: '127.0.0.1', port: Number(port), autoSelectFamily: false });
socket.on('connect', () => finish('network'));
socket.on('error', () => finish());
setTimeout(finish, 1000, 'network that hangs').unref();

function finish(alsoReached?: string): void {
  if (alsoReached) reached.push(alsoReached);
  process.stdout.write(JSON.stringify({ reached }), () => process.exit(0));
}
