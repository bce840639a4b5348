/** The limits of the description of a component. The guest reports them to the author; the parent checks them again. */
export const descriptionLimits = {
  /** Of `name`, `key`, `version`, `description` and the type of a prop, in characters */
  text: 65_536,
  props: 500,
  /** Packages that are not part of Sluice */
  imports: 200,
  /** In characters */
  specifier: 512,
  warnings: 20,
  /** Of all together as JSON, with the warnings */
  characters: 600_000,
  /** Of the message about a mistake */
  message: 16_384,
};
