import { type ChildProcess, spawn } from 'node:child_process';
import { inRoot } from '../../scripts/shell/paths.mjs';
import { freePort } from '../../scripts/shell/ports.mjs';
import { userEnvironment } from './document-shell.js';

/** Starts `npm start` with these variables, on free ports. `output` returns what it has printed so far. */
export async function npmStart(variables: Record<string, string>): Promise<{ launcher: ChildProcess; output: () => string }> {
  const [http, endpoints, kafka, postgres] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const ports = { SLUICE_HTTP_PORT: http, SLUICE_ENDPOINTS_PORT: endpoints, SLUICE_KAFKA_PORT: kafka, SLUICE_POSTGRES_PORT: postgres };
  const named = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const launcher = spawn(process.execPath, [inRoot('scripts', 'start.mjs')], { env: { ...userEnvironment(), ...named, ...variables } });
  let output = '';
  for (const stream of [launcher.stdout, launcher.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return { launcher, output: () => output };
}
