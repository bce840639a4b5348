import type { Command } from 'commander';
import { usageError } from '../session/errors.js';

/** `sluice completion SHELL`: a script that completes commands and options. */
export function completion(program: Command, shell: string): string {
  const commands = program.commands.filter((command) => !('_hidden' in command && command._hidden));
  const names = commands.map((command) => command.name());
  const optionsOf = (command: Command): string => command.options.map(({ long }) => long).join(' ');
  const cases = commands
    .map((command) => `    ${[command.name(), ...command.aliases()].join('|')}) words="${optionsOf(command)}" ;;`)
    .join('\n');
  const script: Record<string, () => string> = {
    bash: () => `# source <(sluice completion bash)
_sluice() {
  local words current="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" = 1 ]; then words="${names.join(' ')}"; else
    case "\${COMP_WORDS[1]}" in
${cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ "\${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}
complete -F _sluice sluice
`,
    zsh: () => `#compdef sluice
# sluice completion zsh > "\${fpath[1]}/_sluice"
_sluice() {
  local command="$words[2]" choices=""
  if (( CURRENT == 2 )); then choices="${names.join(' ')}"; else
    case "$command" in
${cases.replaceAll('words=', 'choices=')}
    esac
  fi
  compadd -- \${=choices}
  _files
}
compdef _sluice sluice
`,
    fish: () =>
      [
        '# sluice completion fish > ~/.config/fish/completions/sluice.fish',
        ...commands.map(
          (command) => `complete -c sluice -n __fish_use_subcommand -f -a ${command.name()} -d ${JSON.stringify(command.description())}`,
        ),
        ...commands.flatMap((command) =>
          command.options.map(
            ({ long, description }) =>
              `complete -c sluice -n "__fish_seen_subcommand_from ${command.name()}" -l ${long?.slice(2)} -d ${JSON.stringify(description)}`,
          ),
        ),
        '',
      ].join('\n'),
  };
  const make = Object.hasOwn(script, shell) ? script[shell] : undefined;
  if (!make) throw usageError(`there is no completion for ${shell}; known are ${Object.keys(script).join(', ')}`);
  return make();
}
