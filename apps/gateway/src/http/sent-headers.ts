/** The names of the headers of a request, in lower case and as often as they were sent: Node joins the values of one that was sent several times. */
export const sentHeaders = (rawHeaders: string[]): string[] => rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
