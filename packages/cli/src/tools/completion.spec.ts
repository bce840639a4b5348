import { spawnSync } from 'node:child_process';
import { describe, expect, it } from '@jest/globals';
import { program } from '../program.js';
import { completion } from './completion.js';

const root = program();
const hasBash = spawnSync('bash', ['--version']).status === 0;

(hasBash ? describe : describe.skip)('in bash', () => {
  /** The words that are offered for the last of these. */
  const offered = (...words: string[]): string[] => {
    const complete = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; printf "%s\\n" "${COMPREPLY[@]}"';
    const { stdout, stderr } = spawnSync('bash', ['-c', `${completion(root, 'bash')}\n${complete}`, 'bash', 'sluice', ...words], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    return stdout.trim().split('\n');
  };

  it.each<[string[], string[]]>([
    [['depl'], ['deploy']],
    [['des'], ['describe']],
    [['list', 'w'], ['webhooks']],
    [['ls', 'w'], ['webhooks']],
    [
      ['off', ''],
      ['source', 'webhook'],
    ],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['admin', 'mig'], ['migrate']],
    [
      ['apply', '--pr'],
      ['--profile', '--prune'],
    ],
    [['list', '-o', 'y'], ['yaml']],
    // which leaves it to bash to complete a file, as one word and with / after a folder
    [['apply', '-f', 'a'], ['']],
    [['deploy', ''], ['']],
  ])('%j is completed to %j', (words, expected) => {
    expect(offered(...words)).toEqual(expected);
  });

  it('files are completed by bash itself', () => {
    const { stdout } = spawnSync('bash', ['-c', `${completion(root, 'bash')}\ncomplete -p sluice`], { encoding: 'utf8' });
    expect(stdout).toBe('complete -o default -F _sluice sluice\n');
  });
});

it('completes already when zsh loads the function', () => {
  expect(completion(root, 'zsh')).toContain('if [ "$funcstack[1]" = _sluice ]; then _sluice "$@"');
});

it('the completion of fish contains kinds and aliases', () => {
  const text = completion(root, 'fish');
  expect(text).toContain('-n "__fish_seen_subcommand_from list ls" -f -a "sources webhooks');
  expect(text).toContain('-n __fish_use_subcommand -f -a rm ');
});

it('refuses another shell as wrong usage', () => {
  expect(() => completion(root, 'csh')).toThrow('there is no completion for csh; known are bash, zsh, fish');
});
