// Wrong usage of an operator's command exits with 2, as that of the command line for users does.
const WRONG_USAGE = 2;

/**
 * For commander's exitOverride, which gets the help as an error, too.
 * @param {{ exitCode: number }} error
 * @returns {never}
 */
export const exitAsMisused = ({ exitCode }) => process.exit(exitCode === 0 ? 0 : WRONG_USAGE);

/**
 * Exits if a command that has no arguments got some.
 * @param {string} command its words, which may be the first arguments
 */
export function refuseArguments(command) {
  const given = process.argv.slice(2);
  const words = command.split(' ');
  const rest = words.every((word, n) => given[n] === word) ? given.slice(words.length) : given;
  if (rest.length === 0) return;
  console.error(`sluice ${command} has no arguments, but got: ${rest.join(' ')}`);
  process.exit(WRONG_USAGE);
}
