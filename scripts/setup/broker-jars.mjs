import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { announced } from '../shell/announced.mjs';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';

const KAFKA = '4.1.1';
const JAVA = 17;
const cache = inRoot('.cache');

/** The folder of the broker's jars, after `ensureBrokerJars`. */
export const brokerJars = join(cache, `kafka-${KAFKA}`);

/** The Java that runs the broker. */
export const java = process.env.JAVA_HOME ? join(process.env.JAVA_HOME, 'bin', 'java') : 'java';

const instead = 'run docker compose up instead, or set KAFKA_BROKERS to an existing broker.';

/**
 * Makes sure that Java is installed and that Apache Kafka has been downloaded with Maven.
 * @param {{ say?: (line: string) => void }} [options]
 */
export async function ensureBrokerJars({ say = console.log } = {}) {
  await checkJava();
  if (existsSync(brokerJars)) return;
  await mkdir(cache, { recursive: true });
  // Downloaded to a temporary folder and renamed, so that the final folder is always complete.
  const half = await mkdtemp(join(cache, 'kafka-half-'));
  try {
    await announced(say, `downloading Apache Kafka ${KAFKA} with Maven`, 'first time, 43 MB', () => fetchInto(half));
    await rename(join(half, 'jars'), brokerJars);
  } catch (error) {
    // Another process (a second start, the tests) was faster.
    if (!existsSync(brokerJars)) throw error;
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}

async function checkJava() {
  const { code, output } = await run(java, ['-version']);
  // Java 8 calls itself 1.8.
  const version = /version "(?:1\.)?(\d+)/.exec(output)?.[1];
  if (code === 0 && Number(version) >= JAVA) return;
  const found = version ? `only Java ${version} was found` : 'none was found';
  throw new ExplainedError(`Java ${JAVA} or newer is required to run Apache Kafka, and ${found}. Install it, ${instead}`);
}

/** @param {string} folder */
async function fetchInto(folder) {
  const pom = join(folder, 'pom.xml');
  await writeFile(pom, POM);
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
  const { code, output, missing } = await run('mvn', [
    ...['--batch-mode', '--quiet', '--file', pom, goal],
    ...['-DincludeScope=runtime', `-DoutputDirectory=${join(folder, 'jars')}`],
  ]);
  if (missing) throw new ExplainedError(`Maven (mvn) is required to download Apache Kafka, and was not found. Install it, ${instead}`);
  if (code !== 0)
    throw new ExplainedError(`${output.trimEnd()}\n\nApache Kafka could not be downloaded: Maven failed, see above. Fix it, ${instead}`);
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
