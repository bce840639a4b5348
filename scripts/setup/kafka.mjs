import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { announced } from '../shell/announced.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { removeAtEnd } from '../shell/keeper.mjs';
import { inRoot } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';
import { classArchive } from './class-archive.mjs';
import { findJava, javaEnvironment, OLDEST_JAVA } from './java.mjs';

const KAFKA = '4.1.1';
/** Of the jars of this version and of what they use. `npm run kafka:checksums` generates it. */
export const CHECKSUMS = inRoot('scripts', 'setup', 'kafka.sha256');
/** The one of docker-compose.yml. */
const IMAGE = `apache/kafka:${KAFKA}`;
const cache = inRoot('.cache');
const jars = join(cache, `kafka-${KAFKA}`);

/**
 * Apache Kafka runs on Java on this machine, or in a container.
 * @typedef {{ java: import('./java.mjs').Java } | { image: string }} Runtime
 */

/** @type {Promise<Runtime> | undefined} */
let runtime;

/**
 * Makes sure that Apache Kafka can be run:
 *
 *   Java 17+ of this machine, or of Python's package index ── its jars are here, or Maven fetches them ──► Java
 *     └─ otherwise ── Docker responds ──► the image of docker-compose.yml
 *                       └─ otherwise ──► an error that names what to install
 *
 * @param {{ say?: (line: string) => void }} [options]
 */
export function ensureKafka({ say = console.log } = {}) {
  runtime ??= findRuntime(say);
  return runtime;
}

/**
 * The command that runs a program of Kafka, after `ensureKafka`.
 *
 * @param {string} dir the folder whose files the program reads and writes
 * @param {string[]} jvm options of the JVM
 * @param {string[]} program its class and arguments
 * @param {{ keep?: boolean }} [options] keep: it is the broker of this folder, of which there is one
 * @returns {Promise<{ command: string, args: string[], options: { cwd: string, env: NodeJS.ProcessEnv }, ended?: (isWhole: boolean) => void }>} `options` of the process: it runs in
 *   the folder; `ended`: see `classArchive`
 */
export async function kafkaCommand(dir, jvm, program, { keep = false } = {}) {
  const found = await ensureKafka();
  if ('java' in found) {
    const classpath = join(jars, '*');
    const archive = keep ? classArchive(jars, [found.java.version, classpath]) : undefined;
    return {
      command: found.java.program,
      args: [...jvm, ...(archive?.options ?? []), '-cp', classpath, ...program],
      options: { cwd: dir, env: javaEnvironment(found.java.program) },
      ended: archive?.ended,
    };
  }
  const user = `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`;
  return {
    command: 'docker',
    args: [
      // the network of the machine: the broker listens on 127.0.0.1, as it does without a container
      ...[
        'run',
        '--rm',
        '--init',
        ...(keep ? ['--cidfile', containerFile(dir)] : []),
        '--network',
        'host',
        '--user',
        user,
        '--env',
        'LC_ALL=C.UTF-8',
      ],
      ...[
        '--cap-drop',
        'ALL',
        '--security-opt',
        'no-new-privileges',
        '--volume',
        `${dir}:${dir}`,
        '--workdir',
        dir,
        '--entrypoint',
        'java',
      ],
      ...[found.image, ...jvm, '-cp', '/opt/kafka/libs/*', ...program],
    ],
    options: { cwd: dir, env: process.env },
  };
}

/** Removes the broker's container, if it had one: it runs on when Docker's client is killed. @param {string} dir */
export async function removeContainer(dir) {
  const id = await readFile(containerFile(dir), 'utf8').catch(() => '');
  if (id) await run('docker', ['rm', '--force', id]);
  await rm(containerFile(dir), { force: true });
}

/** @param {string} dir */
const containerFile = (dir) => join(dir, 'broker.container');

/** @param {(line: string) => void} say @returns {Promise<Runtime>} */
async function findRuntime(say) {
  const { java, found } = await findJava(say);
  const problem = java
    ? await prepareJars(java.program, say)
    : `Java ${OLDEST_JAVA} or newer is required to run Apache Kafka, and ${found}`;
  if (java && !problem) return { java };
  if (await pullImage(say)) {
    say(`${problem}: it runs in a container`);
    return { image: IMAGE };
  }
  throw new ExplainedError(`${problem}. Install it, or Docker, or set KAFKA_BROKERS to an existing broker.`);
}

/**
 * @param {string} java
 * @param {(line: string) => void} say
 * @returns {Promise<string | undefined>} why they are not there
 */
async function prepareJars(java, say) {
  if (existsSync(jars)) return undefined;
  const { code, output, missing } = await run('mvn', ['--version'], { env: javaEnvironment(java) });
  if (missing) return 'Maven (mvn) is required to download Apache Kafka, and was not found';
  if (code !== 0) return `${output.trimEnd()}\n\nMaven (mvn) is required to download Apache Kafka, and does not work, see above`;
  await fetchJars(java, say);
  return undefined;
}

/** @param {string} java @param {(line: string) => void} say */
async function fetchJars(java, say) {
  await mkdir(cache, { recursive: true });
  // Downloaded to a temporary folder and renamed, so that the final folder is always complete.
  const half = await mkdtemp(join(cache, 'kafka-half-'));
  removeAtEnd(half);
  try {
    await announced(say, `downloading Apache Kafka ${KAFKA} with Maven`, 'first time, 43 MB', async () => {
      await downloadJars(half, java);
      await checkJars(join(half, 'jars'));
    });
    await rename(join(half, 'jars'), jars);
  } catch (error) {
    // Another process (a second start, the tests) was faster.
    if (!existsSync(jars)) throw error;
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}

/**
 * Downloads the jars into `jars` in a folder.
 * @param {string} folder
 * @param {string} java
 */
export async function downloadJars(folder, java) {
  const pom = join(folder, 'pom.xml');
  await writeFile(pom, POM);
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
  const { code, output } = await run(
    'mvn',
    ['--batch-mode', '--quiet', '--file', pom, goal, '-DincludeScope=runtime', `-DoutputDirectory=${join(folder, 'jars')}`],
    { env: javaEnvironment(java) },
  );
  if (code !== 0)
    throw new ExplainedError(
      `${output.trimEnd()}\n\nApache Kafka could not be downloaded: Maven failed, see above. Fix it, ` +
        'run docker compose up instead, or set KAFKA_BROKERS to an existing broker.',
    );
}

/**
 * A repository or a proxy may have cut or changed a file. Maven 3 only warns of that, and some repositories have no checksums.
 * @param {string} folder
 */
async function checkJars(folder) {
  const expected = new Set((await readFile(CHECKSUMS, 'utf8')).split('\n').filter(Boolean));
  const unexpected = (await checksums(folder)).find((line) => !expected.delete(line)) ?? [...expected][0];
  if (unexpected)
    throw new ExplainedError(
      `Apache Kafka could not be downloaded: ${unexpected.split('  ')[1]} is missing or is not the published file. A repository or a proxy has changed it: ` +
        'delete it from ~/.m2/repository and try again, run docker compose up instead, or set KAFKA_BROKERS to an existing broker.',
    );
}

/**
 * The lines that `sha256sum` prints for the jars in a folder.
 * @param {string} folder
 */
export async function checksums(folder) {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.jar')).sort();
  /** @param {string} name */
  const sha256 = async (name) =>
    createHash('sha256')
      .update(await readFile(join(folder, name)))
      .digest('hex');
  return Promise.all(names.map(async (name) => `${await sha256(name)}  ${name}`));
}

/** @param {(line: string) => void} say @returns {Promise<boolean>} whether Docker responds and has the image */
async function pullImage(say) {
  if ((await run('docker', ['info'])).code !== 0) return false;
  if ((await run('docker', ['image', 'inspect', IMAGE])).code === 0) return true;
  const { code } = await announced(say, `pulling the image ${IMAGE}`, 'first time, 150 MB', () => run('docker', ['pull', IMAGE]));
  return code === 0;
}

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sluice</groupId>
  <artifactId>broker</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${KAFKA}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
`;
