import { createHash, generateKeyPairSync, sign, X509Certificate } from 'node:crypto';

/** A self-signed certificate, created for each test run, so that the repository contains no private key and none expires. */
export function makeTestCertificate(names: string[]): { key: string; cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
  const commonName = sequence(set(sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from('Sluice test')))));
  const day = 24 * 3600 * 1000;
  const validity = sequence(time(Date.now() - day), time(Date.now() + day));
  const serial = der(0x02, Buffer.concat([Buffer.from([1]), createHash('sha256').update(spki).digest().subarray(0, 8)]));
  const extensions = sequence(
    sequence(oid(0x55, 0x1d, 0x13), der(0x01, Buffer.from([255])), der(0x04, sequence(der(0x01, Buffer.from([255]))))),
    sequence(oid(0x55, 0x1d, 0x11), der(0x04, sequence(...names.map((name) => der(0x82, Buffer.from(name)))))),
  );
  const version3 = der(0xa0, der(0x02, Buffer.from([2])));
  const content = sequence(version3, serial, ecdsaWithSha256, commonName, validity, commonName, spki, der(0xa3, extensions));
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', content, privateKey)]));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: new X509Certificate(sequence(content, ecdsaWithSha256, signature)).toString(),
  };
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function set(part: Buffer): Buffer {
  return der(0x31, part);
}

function oid(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  return der(0x18, Buffer.from(digits));
}
