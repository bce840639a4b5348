import { execFile, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { inRoot } from '../scripts/shell/paths.mjs';
import { userEnvironment } from './support/document-shell.js';
import { eventually } from './support/eventually.js';
import { operations } from './support/openapi.js';
import { Receiver } from './support/receiver.js';
import { joinSystem, type System } from './support/system.js';
import { needing } from './support/target.js';
import { registerWorkflow } from './support/workflows.js';

const PYTHON_GENERATOR = 'openapi-python-client==0.29.1';
const GO_GENERATOR = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';
const GO_RUNTIME = 'github.com/oapi-codegen/runtime v1.8.0';

const MAVEN = ['mvn', '--quiet', '--batch-mode'];

const PROGRAMS = inRoot('test', 'generated-clients');
const DOCUMENT = inRoot('docs', 'openapi.yaml');
const EVERY_OPERATION = operations.map(({ operationId }) => operationId);

/** A generator of clients, and a program that calls operations with the client. */
interface Language {
  name: string;
  /** The part of the name of the test. */
  does: string;
  /** The operations that the program calls. */
  calls: string[];
  /** The program that must be installed, and a command that succeeds if its registry of packages responds. */
  needs: string;
  registry: string[];
  /** Generates the client in a folder, and returns the command that runs the program. */
  generate(folder: string): Promise<string[]>;
}

const languages: Language[] = [
  {
    name: 'Python',
    does: 'call every operation',
    calls: EVERY_OPERATION,
    needs: 'python3',
    registry: ['python3', '-m', 'pip', 'index', 'versions', 'openapi-python-client'],
    generate: async (folder) => {
      // installed once: the version is part of the name
      const environment = inRoot('.cache', 'generated-clients', PYTHON_GENERATOR);
      const bin = join(environment, 'bin');
      if (!existsSync(join(bin, 'openapi-python-client'))) {
        await execute(['python3', '-m', 'venv', environment], folder);
        await execute([join(bin, 'python'), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', PYTHON_GENERATOR], folder);
      }
      writeFileSync(join(folder, 'names.yaml'), 'project_name_override: sluice-client\npackage_name_override: sluice_client\n');
      const options = ['--path', DOCUMENT, '--meta', 'none', '--output-path', 'sluice_client', '--config', 'names.yaml'];
      // the generator calls ruff, which is installed beside it
      await execute([join(bin, 'openapi-python-client'), 'generate', ...options], folder, {
        PATH: `${bin}${delimiter}${process.env.PATH}`,
      });
      cpSync(join(PROGRAMS, 'every_operation.py'), join(folder, 'every_operation.py'));
      return [join(bin, 'python'), 'every_operation.py'];
    },
  },
  {
    name: 'Go',
    does: 'call every operation',
    calls: EVERY_OPERATION,
    needs: 'go',
    registry: ['go', 'list', '-m', GO_RUNTIME.replace(' ', '@')],
    generate: async (folder) => {
      mkdirSync(join(folder, 'sluice'));
      writeFileSync(
        join(folder, 'client.yaml'),
        'package: sluice\noutput: sluice/client.gen.go\ngenerate: { client: true, models: true }\n',
      );
      // before there is a module, `go run` takes the dependencies of the generator
      await execute(['go', 'run', GO_GENERATOR, '-config', 'client.yaml', DOCUMENT], folder);
      writeFileSync(join(folder, 'go.mod'), `module go-client\n\ngo 1.24\n\nrequire ${GO_RUNTIME}\n`);
      cpSync(join(PROGRAMS, 'every_operation.go'), join(folder, 'main.go'));
      await execute(['go', 'mod', 'tidy'], folder);
      await execute(['go', 'build', '-o', 'every_operation', '.'], folder);
      return [join(folder, 'every_operation')];
    },
  },
  {
    // for all languages of openapi-generator: the classes of all schemas and operations are compiled
    name: 'Java',
    does: 'publish an event and read it',
    calls: ['publishSourceEvents', 'listSourceEvents'],
    needs: 'mvn',
    registry: [...MAVEN, '--file', join(PROGRAMS, 'java', 'pom.xml'), 'dependency:resolve', 'dependency:resolve-plugins'],
    generate: async (folder) => {
      cpSync(join(PROGRAMS, 'java'), folder, { recursive: true });
      cpSync(DOCUMENT, join(folder, 'openapi.yaml'));
      await execute([...MAVEN, 'compile'], folder);
      return [...MAVEN, 'exec:java', '-Dmain=PublishAndRead'];
    },
  },
];

const execute = async ([command = '', ...args]: string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<string> =>
  (await promisify(execFile)(command, args, { cwd, env: { ...userEnvironment(), ...env }, timeout: 400_000, maxBuffer: 64 * 1024 * 1024 }))
    .stdout;

/** Why the language cannot be tested on this machine. */
function lackOf({ needs, registry: [command = '', ...args] }: Language): string | undefined {
  if (spawnSync('which', [needs]).status !== 0) return `${needs} is missing`;
  return spawnSync(command, args, { cwd: tmpdir(), timeout: 60_000 }).status === 0 ? undefined : `its registry does not respond`;
}

needing('accounts', 'receiver').describe('clients that are generated from the OpenAPI document', () => {
  let system: System;
  let receiver: Receiver;
  beforeAll(async () => {
    [system, receiver] = await Promise.all([joinSystem(), Receiver.start()]);
  });
  afterAll(async () => {
    await Promise.all([system?.stop(), receiver?.close()]);
  });

  for (const language of languages) {
    const reason = lackOf(language);
    (reason === undefined ? it : it.skip)(
      `${language.does} in ${language.name}, and parse its responses${reason === undefined ? '' : ` [skipped: ${reason}]`}`,
      async () => {
        const folder = mkdtempSync(join(tmpdir(), 'sluice-generated-'));
        try {
          const program = await language.generate(folder);
          const api = await system.account();
          const workflow = `p_${Date.now().toString(36)}${language.name.toLowerCase()}`;
          await registerWorkflow(system.brokers, workflow, api.account.id);
          await eventually(async () => expect((await api.get(`/workflows/${workflow}/streams`)).status).toBe(200));
          const printed = await execute(program, folder, {
            SLUICE_URL: system.apiUrl.replace(/\/v1$/, ''),
            SLUICE_API_KEY: api.account.api_key,
            RECEIVER: receiver.url,
            WORKFLOW: workflow,
          });
          const called = new Set(printed.split('\n').map((line) => named(line.split(' ')[0] ?? '')));
          expect(language.calls.filter((id) => !called.has(named(id)))).toEqual([]);
        } finally {
          rmSync(folder, { recursive: true, force: true });
        }
      },
    );
  }
});

/** The same for `listSources` and `list_sources`. */
const named = (operationId: string): string => operationId.replaceAll('_', '').toLowerCase();
