import { readdirSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';

// Runs in a jail before the jail is used, and prints what it can reach but must not. Arguments: a port on 127.0.0.1 where the parent listens, a
// file of the parent, and the parent's process id.
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
// In a separate PID namespace, the probe has no parent in it, nothing outside can be signalled, and the parent's number means another process
// there: in a container, where process ids are small, often one of the probe's own threads.
const seesParent = process.ppid !== 0;
if (seesParent) attempt('signals', () => process.kill(Number(parent), 0));

const socket = createConnection({ host: '127.0.0.1', port: Number(port), autoSelectFamily: false });
socket.on('connect', () => finish('network'));
socket.on('error', () => finish());
setTimeout(finish, 5000, 'network that hangs').unref();

function finish(alsoReached?: string): void {
  if (alsoReached) reached.push(alsoReached);
  process.stdout.write(JSON.stringify({ reached }), () => process.exit(0));
}
