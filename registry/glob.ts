/**
 * Returns a test of text against a pattern in which each `*` is one or more characters. Takes time
 * linear in the text for each star; a regular expression could take exponential time.
 */
export function globOf(pattern: string): (text: string) => boolean {
  if (!pattern.includes('*')) return (text) => text === pattern
  return (text) => matchesGlob(pattern, text)
}

/** A star first takes one character, then one more each time the rest fails to match. */
function matchesGlob(pattern: string, text: string): boolean {
  let glob = 0
  let at = 0
  let starGlob = -1
  let starAt = 0
  while (at < text.length) {
    if (pattern[glob] === '*') {
      starGlob = ++glob
      starAt = ++at
    } else if (pattern[glob] === text[at]) {
      glob++
      at++
    } else if (starGlob >= 0) {
      glob = starGlob
      at = ++starAt
    } else return false
  }
  return glob === pattern.length
}
