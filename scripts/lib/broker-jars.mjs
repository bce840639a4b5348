import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ExplainedError } from './explained-error.mjs';
import { inRoot } from './paths.mjs';
import { run } from './run.mjs';

const KAFKA = '4.1.1';
const JAVA = 17;
const cache = inRoot('.cache');

/** Where the broker's jars are, once `ensureBrokerJars` is through. */
export const brokerJars = join(cache, `kafka-${KAFKA}`);

/** The Java that runs the broker. */
export const java = process.env.JAVA_HOME ? join(process.env.JAVA_HOME, 'bin', 'java') : 'java';

const instead = 'Or run docker compose up, which needs neither, or give a broker of your own in KAFKA_BROKERS.';

/**
 * Makes sure that Java is here and that Apache Kafka has been fetched with Maven.
 * @param {{ say?: (line: string) => void }} [options]
 */
export async function ensureBrokerJars({ say = console.log } = {}) {
  await checkJava();
  if (existsSync(brokerJars)) return;
  say(`… fetching Apache Kafka ${KAFKA} (first time, 43 MB)`);
  await mkdir(cache, { recursive: true });
  // Fetched beside its place and renamed: what is in its place is complete.
  const half = await mkdtemp(join(cache, 'kafka-half-'));
  try {
    await fetchInto(half);
    await rename(join(half, 'jars'), brokerJars);
  } catch (error) {
    // Somebody else (another start, the tests) was faster.
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
  const found = version ? `this machine has Java ${version}` : 'this machine has no Java';
  throw new ExplainedError(`Apache Kafka needs Java ${JAVA} or newer, and ${found}. ${instead}`);
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
  if (missing) throw new ExplainedError(`Apache Kafka is fetched with Maven (mvn), which is not here: install it. ${instead}`);
  if (code !== 0) throw new ExplainedError(`${output.trimEnd()}\n\nApache Kafka could not be fetched: Maven failed, see above. ${instead}`);
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
