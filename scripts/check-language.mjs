// npm run check:language: finds phrases in documents, comments and messages that have a plainer alternative.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { proseOf, testNames } from './language/prose.mjs';
import { inRoot, ROOT } from './shell/paths.mjs';

/** The files to check. */
const SCOPE =
  /\.md$|^docs\/|^(k8s|docker|components|\.ci)\/|^docker-|^Dockerfile$|^\.env\.example$|^(apps|libs|packages|scripts|bench|test)\/.*\.(ts|mjs|sh)$|^[^/]+\.c?js$/;

/** Files that quote the phrases, and code or texts of others. */
const EXCEPT =
  /^scripts\/(check-language|language\/prose\.spec)\.mjs$|^docker\/seccomp|real-components|packages\/client\/src\/generated|sandbox\/attacks/;

/** @type {[phrase: RegExp, better: string][]} */
const PHRASES = [
  [/\b(tell|tells|telling|told)\b/i, 'report, log, notify, return, distinguish'],
  [/\bhears? of\b|\bheard of\b/i, 'learn of, receive'],
  [/\banswer(s|ed|ing)\b(?! with)|\/\*\* Answers\b/, 'return, respond'],
  [/\bof (yours|theirs|one's own)\b|\bours\b/i, 'our, your, separate'],
  [
    /\bof (its|their) own\b(?! (?!(and|as|at|because|but|by|for|from|if|in|of|on|or|so|that|to|until|when|which|while|with)\b)\w)/i,
    'separate, dedicated',
  ],
  [/\b(be|is|are) had\b/i, 'available'],
  [/\bgo(es)? on\b(?! to)/i, 'continue'],
  [/\ball the same\b/i, 'still, anyway'],
  [/\bso long as\b|\bfor so long\b|\bso many\b/i, 'as long as, this long, this many'],
  [/(?<!\bthere )\b(is|are) no (?!longer\b|more\b)/i, 'is not a'],
  [/[.;] (what|who) (is|are|was|has|had|comes|goes|we|it|he|the)\b(?!.*\?)/i, 'a noun: the process that, the events that'],
  [/\bwhoever\b/i, 'the person or process that'],
  [/\b(he|him|his)\b/i, 'they, it'],
  [/\banew\b/i, 'again'],
  [/\bin good order\b/i, 'gracefully'],
  [/\b(is|are|was|were) away\b/i, 'is down, is unavailable'],
  [/\bnow and then\b/i, 'sometimes'],
  [/\bfor ever\b/i, 'forever'],
  [/\bmust be there\b/i, 'you need'],
  [/\bthe asker\b/i, 'the caller, the sender'],
  [/(\/\*\*|\/\/|^ *[*-]) (What|Who|Whose|Whoever) (?!.*\?)/, 'a noun: the events that, the process that'],
  [/(\/\*\*|\/\/|^ *\*) As (many|much) /, 'the number of, the most, at most'],
  [
    /\b(class|method|function|handler|service|runtime|gateway|catalog|routing|store|code|component|record|row|table|Kafka|Node|PostgreSQL|broker) (says?|can say)\b/,
    'reports, returns, logs',
  ],
  [/`` (says?|said)\b/, 'reports, returns, names'],
  [/\bfrom time to time\b/i, 'periodically'],
  [/\b(somebody|everybody)\b(?!')/i, 'a user, a process, every caller'],
  [/\basked for\b/i, 'requested'],
  [/\b(is|are|was|were|does|do|did|has|have|can|could|would|wo)n['’]t\b|\b(it|there|that|what)['’]s\b/, 'is not, it is'],
];

/** Beginnings of test names that make no sense in a list of failures. */
const FRAGMENT = /^(of|to|with|that|who|what|if|for|in)\b/i;
/** As these, unless a `describe` names the subject. */
const WITHOUT_SUBJECT = /^(is|are|has|have)\b/;

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' }).split('\n');
let count = 0;
for (const file of files) {
  if (!SCOPE.test(file) || EXCEPT.test(file)) continue;
  const content = readFileSync(inRoot(file), 'utf8');
  for (const { line, name, described } of /[.-]spec\.(ts|mjs)$/.test(file) || file.startsWith('test/rest/')
    ? testNames(file, content)
    : []) {
    if (!FRAGMENT.test(name) && (described || !WITHOUT_SUBJECT.test(name))) continue;
    console.error(`${file}:${line}: a test name is a full sentence\n    ${name}`);
    count += 1;
  }
  for (const { line, text } of proseOf(file, content)) {
    for (const [phrase, better] of PHRASES) {
      const found = phrase.exec(text);
      if (!found) continue;
      console.error(`${file}:${line}: "${found[0].trim()}": ${better}\n    ${text.trim()}`);
      count += 1;
    }
  }
}
if (count > 0) {
  console.error(`${count} phrases have a plainer alternative.`);
  process.exitCode = 1;
} else console.log('No phrase has a plainer alternative.');
