import type { PackageImport } from '../sandbox.js';
import { descriptionLimits } from '../wire/description-limits.js';
import type { GuestLimits, ToGuest } from '../wire/messages.js';
import { closeBuiltIns } from './built-ins.js';
import { Channel } from './channel.js';
import { describeComponent } from './describe-component.js';
import { stripTypeScriptTypes } from 'node:module';
import { setDefaultCACertificates, getCACertificates } from 'node:tls';
import { installEgress } from './egress.js';
import { guestError } from './guest-error.js';
import { installConsole } from './guest-console.js';
import { ComponentLoader, loadingError, NoComponent, outlineProgram } from './load-component.js';
import { CuratedModules } from './modules.js';
import { closeProcess, installEnvironment, installMemoryUsage, resolvePathsNatively } from './process-surface.js';
import { installTracedFetch } from './traced-fetch.js';
import { runComponent } from './run-component.js';
import { currentRun } from './run-state.js';

// Runs inside the jail, in a process of one account. Nothing in these files is a security boundary: they run components and report mistakes to authors.

const channel = new Channel();
const send = channel.send.bind(channel);
let loader: ComponentLoader;
let modules: CuratedModules;
let limits: GuestLimits;

channel.listen((message) => {
  switch (message.t) {
    case 'setup':
      return setUp(message);
    case 'warm':
      return modules.warm(message.modules);
    case 'ping':
      return send({ t: 'pong', n: message.n });
    case 'inspect':
      return void inspect(message);
    case 'run':
      return void runComponent(message, loader, limits, send);
  }
});

function setUp(message: Extract<ToGuest, { t: 'setup' }>): void {
  limits = message.limits;
  modules = new CuratedModules(message.modules);
  loader = new ComponentLoader(modules);
  const connectDirectly = installEgress(message.egress);
  // The operator's certificate authority (for a mock server, an intranet), in addition to the public ones
  if (message.trustedCa) setDefaultCACertificates([...getCACertificates('default'), message.trustedCa]);
  installConsole();
  installTracedFetch();
  installEnvironment();
  installMemoryUsage();
  Object.assign(globalThis, { defineComponent: identity, defineSource: identity, defineAction: identity, defineApp: identity });
  process.on('uncaughtException', stray);
  process.on('unhandledRejection', stray);
  if (message.hardened) {
    closeProcess();
    resolvePathsNatively();
    closeBuiltIns();
  }
  // A hostile component would find it anyway; this way the tests of the jail need not search for it
  else Object.assign(globalThis, { connectDirectly, egressPath: message.egress });
  send({ t: 'ready' });
}

async function inspect(message: Extract<ToGuest, { t: 'inspect' }>): Promise<void> {
  const { id, code, packages, installs } = message;
  let imports: PackageImport[] = [];
  try {
    const outline = outlineProgram().outline(code, stripTypeScriptTypes);
    imports = outline.imports;
    const missing = installs && packages === undefined ? imports.filter(({ specifier }) => modules.mayBeInstalled(specifier)) : [];
    if (missing.length > 0) return send({ t: 'missing', id, imports: bounded(missing) });
    const component = await loader.load(message, '');
    send({ t: 'described', id, description: describeComponent(component, outline.warnings) });
  } catch (thrown) {
    const { message, place } = loadingError(thrown, imports);
    send({ t: 'rejected', id, message: message.slice(0, descriptionLimits.message), ...place });
  }
}

/** @throws NoComponent */
function bounded(imports: PackageImport[]): PackageImport[] {
  const { imports: most, specifier: longest } = descriptionLimits;
  if (imports.length > most)
    throw new NoComponent(`The code imports ${imports.length} modules that are not part of Sluice; the limit is ${most}`);
  for (const { specifier } of imports)
    if (specifier.length > longest)
      throw new NoComponent(
        `The module "${specifier.slice(0, 50)}…" has a name of ${specifier.length} characters; the limit is ${longest}`,
      );
  return imports;
}

/** An uncaught error is attributed to the run in whose context it occurred, even if that run has ended. */
function stray(error: unknown): void {
  const run = currentRun.getStore();
  if (run && !run.done) return run.fail(error);
  // later ones are dropped: the parent would end a process that sends a message for each
  if (!run || run.late) return;
  run.late = true;
  send({ t: 'late', id: run.job.id, error: guestError(error) });
}

function identity(value: unknown): unknown {
  return value;
}
