const MAX_LENGTH = 2048;

/** What is wrong with the URL of a webhook, or null. Whether its address may be called is found out when it is. */
export function webhookUrlProblem(url: string | null | undefined): string | null {
  if (!url) return 'url is required';
  if (url.length > MAX_LENGTH) return `url must be at most ${MAX_LENGTH} characters long`;
  // URL itself forgives missing slashes, inner line breaks and blanks at the ends
  if (!/^https?:\/\/[^\s/?#\\\p{Cc}][^\s\p{Cc}]*$/iu.test(url) || !URL.canParse(url)) {
    return 'url must contain a protocol, http or https, and a host name, such as https://example.com/hooks';
  }
  return null;
}
