// npm run kafka:checksums: writes the checksums of the jars that Maven downloads for the version of Kafka in kafka.mjs.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findJava } from './setup/java.mjs';
import { CHECKSUMS, checksums, downloadJars } from './setup/kafka.mjs';

const folder = await mkdtemp(join(tmpdir(), 'sluice-kafka-'));
try {
  const { java } = await findJava(console.log);
  if (!java) throw new Error('Java is required');
  await downloadJars(folder, java.program);
  const lines = await checksums(join(folder, 'jars'));
  await writeFile(CHECKSUMS, `${lines.join('\n')}\n`);
  console.log(`${CHECKSUMS}: ${lines.length} jars`);
} finally {
  await rm(folder, { recursive: true });
}
