import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { codeBlocks } from '../scripts/language/code-blocks.mjs';
import { inRoot } from '../scripts/shell/paths.mjs';
import { freePort } from '../scripts/shell/ports.mjs';
import type { Api } from './support/api.js';
import { DocumentShell, userEnvironment } from './support/document-shell.js';
import { joinSystem, type System } from './support/system.js';
import { isSecured, needing } from './support/target.js';

/** The programs that documents need beside Node, each with a command that finds out whether their registry responds. */
const TOOLS: Record<string, { program: string; registry: string[] }> = {
  python: { program: 'python3', registry: ['python3', '-m', 'pip', 'index', 'versions', 'standardwebhooks'] },
  go: { program: 'go', registry: ['go', 'list', '-m', 'github.com/twmb/franz-go@latest'] },
  java: { program: 'mvn', registry: ['mvn', '-q', '-B', 'dependency:get', '-Dartifact=org.slf4j:slf4j-nop:2.0.16', '-Dtransitive=false'] },
  node: { program: 'npm', registry: ['npm', 'view', 'standardwebhooks', 'version'] },
};
const succeeds = ([command = '', ...args]: string[]): boolean => spawnSync(command, args, { timeout: 60_000 }).status === 0;
const toolsOf = (name: string) => TOOLS[/-(python|go|java)\.md$/.exec(name)?.[1] ?? 'node']!;

const tutorials = readdirSync(inRoot('docs', 'tutorials')).map((name) => `docs/tutorials/${name}`);
const documents = ['README.md', ...tutorials, 'docs/reference/components.md'];
const examples = readdirSync(inRoot('examples'), { withFileTypes: true }).filter((each) => each.isDirectory() && each.name !== 'support');

/** For all documents but one, `npx sluice` starts the command without npm. */
const QUICK = { PATH: `${inRoot('test', 'support', 'bin')}:${userEnvironment().PATH}` };

// they start servers on this machine and use Kafka without a login
const { describe: describeLocal } = needing('processes');

describeLocal('documents', () => {
  let system: System;
  let api: Api;
  beforeAll(async () => {
    system = await joinSystem();
  });
  afterAll(async () => system?.stop());

  /** The values of the variables that the documents and examples use. */
  const settings = async (): Promise<Record<string, string>> => {
    api = await system.account();
    const [port, second] = [await freePort(), await freePort()];
    return {
      SLUICE_URL: system.apiUrl.replace(/\/v1$/, ''),
      SLUICE_API_KEY: api.account.api_key,
      KAFKA: system.brokers,
      PORT: String(port),
      SHOP_PORT: String(second),
    };
  };

  describe('every shell block is executed, and prints what the document says', () => {
    for (const document of documents) {
      const { program, registry } = toolsOf(document);
      const reason =
        isSecured && document.includes('kafka') ? 'Kafka requires a login' : succeeds(['which', program]) ? null : `${program} is missing`;
      (reason === null ? it : it.skip)(`${document}${reason === null ? '' : ` [skipped: ${reason}]`}`, async () => {
        const shell = new DocumentShell({ ...(await settings()), ...(document === 'README.md' ? {} : QUICK) });
        try {
          let executed = 0;
          for (const block of codeBlocks(readFileSync(inRoot(document), 'utf8'))) {
            if (!(await shell.execute(block, () => succeeds(registry)))) {
              console.warn(`${document}: the blocks after line ${block.line} need a registry that does not respond`);
              break;
            }
            executed += 1;
          }
          expect(executed).toBeGreaterThan(0);
        } finally {
          shell.close();
        }
      });
    }
  });

  describe('every example shows what it promises', () => {
    for (const { name } of examples) {
      const run = isSecured && name.includes('kafka') ? it.skip : it;
      run(name, async () => {
        const env = { ...userEnvironment(), ...(await settings()) };
        const { code, output } = await execute('bash', [inRoot('examples', name, 'run.sh')], env);
        expect({ code, output }).toMatchObject({ code: 0, output: expect.stringMatching(/The example works\.\n$/) });
        // it has deleted what it created
        expect((await api.get('/users/me/sources')).body.data).toEqual([]);
        expect((await api.get('/users/me/webhooks')).body.data).toEqual([]);
      });
    }
  });
});

function execute(command: string, args: string[], env: NodeJS.ProcessEnv): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, args, { env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}
