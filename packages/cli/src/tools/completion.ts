import type { Command } from 'commander';
import { KINDS } from '../resources/kinds.js';
import { usageError } from '../session/errors.js';
import { FORMATS } from '../session/output.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** The first words after a command, by its name, where they are known without a request. */
const wordsOf = (operators: string[]): Record<string, string[]> => ({
  list: KINDS.map(({ name }) => `${name}s`),
  get: KINDS.map(({ name }) => name),
  delete: KINDS.filter((kind) => kind.delete).map(({ name }) => name),
  ...Object.fromEntries(['on', 'off'].map((name) => [name, KINDS.filter((kind) => kind.setActive).map((kind) => kind.name)])),
  completion: [...SHELLS],
  admin: operators,
});

/** `sluice completion SHELL`: a script that completes commands, options, formats, kinds and files. */
export function completion(program: Command, shell: string): string {
  const isHidden = (command: Command): boolean => '_hidden' in command && command._hidden === true;
  const commands = program.commands.filter((command) => !isHidden(command));
  const words = wordsOf(program.commands.filter(isHidden).map((command) => command.name()));
  const namesOf = (command: Command): string[] => [command.name(), ...command.aliases()];
  const names = commands.flatMap(namesOf).join(' ');
  const formats = FORMATS.join(' ');
  /** One line for each command that has such texts, of a `case` that chooses by the name of the command. */
  const cases = (textsOf: (command: Command) => string[]): string =>
    commands
      .filter((command) => textsOf(command).length > 0)
      .map((command) => `      ${namesOf(command).join('|')}) choices="${textsOf(command).join(' ')}" ;;`)
      .join('\n');
  const optionCases = cases(({ options }) => options.map(({ long }) => long ?? ''));
  const wordCases = cases((command) => words[command.name()] ?? []);

  const script: Record<(typeof SHELLS)[number], () => string> = {
    bash: () => `# source <(sluice completion bash)
_sluice() {
  local choices="" current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}"
  if [ "$COMP_CWORD" = 1 ]; then choices="${names}"
  elif [ "$before" = -o ] || [ "$before" = --output ]; then choices="${formats}"
  elif [[ "$current" = -* ]]; then
    case "\${COMP_WORDS[1]}" in
${optionCases}
    esac
  elif [ "$COMP_CWORD" = 2 ]; then
    case "\${COMP_WORDS[1]}" in
${wordCases}
    esac
  fi
  COMPREPLY=($(compgen -W "$choices" -- "$current"))
}
# bash itself completes files where there is nothing else
complete -o default -F _sluice sluice
`,
    zsh: () => `#compdef sluice
# sluice completion zsh > "\${fpath[1]}/_sluice"
_sluice() {
  local choices="" current="$words[CURRENT]" before="$words[CURRENT-1]"
  if (( CURRENT == 2 )); then choices="${names}"
  elif [[ "$before" == -o || "$before" == --output ]]; then choices="${formats}"
  elif [[ "$current" == -* ]]; then
    case "$words[2]" in
${optionCases}
    esac
  elif (( CURRENT == 3 )); then
    case "$words[2]" in
${wordCases}
    esac
  fi
  if [[ -n "$choices" ]]; then compadd -- \${=choices}; else _files; fi
}
# as a file in fpath, it is called to complete; sourced, it is only defined
if [ "$funcstack[1]" = _sluice ]; then _sluice "$@"; else compdef _sluice sluice; fi
`,
    fish: () =>
      [
        '# sluice completion fish > ~/.config/fish/completions/sluice.fish',
        ...commands.flatMap((command) => {
          const after = `complete -c sluice -n "__fish_seen_subcommand_from ${namesOf(command).join(' ')}"`;
          return [
            ...namesOf(command).map(
              (name) => `complete -c sluice -n __fish_use_subcommand -f -a ${name} -d ${JSON.stringify(command.description())}`,
            ),
            ...(words[command.name()] ? [`${after} -f -a "${words[command.name()]!.join(' ')}"`] : []),
            ...command.options.map(
              ({ short, long, description }) =>
                `${after}${short ? ` -s ${short.slice(1)}` : ''} -l ${long?.slice(2)}${long === '--output' ? ` -x -a "${formats}"` : ''} -d ${JSON.stringify(description)}`,
            ),
          ];
        }),
        '',
      ].join('\n'),
  };
  const known = SHELLS.find((each) => each === shell);
  if (!known) throw usageError(`there is no completion for ${shell}; known are ${SHELLS.join(', ')}`);
  return script[known]();
}
