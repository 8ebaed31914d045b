/**
 * Levenshtein distance: the number of characters to insert, delete or replace to turn `a` into `b`.
 */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, replaced))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** Maximum distance of a typo. Same as in commander's suggestions. */
const TYPO_DISTANCE_MAX = 3
const TYPO_SHARE_MAX = 0.6

/** Returns the name that `word` is most likely a typo of, or undefined. */
export function nearestName(word: string, names: readonly string[]): string | undefined {
  const [nearest] = names
    .map((name) => ({ name, distance: editDistance(word, name) }))
    .filter(({ name, distance }) => {
      return distance <= TYPO_DISTANCE_MAX && distance < TYPO_SHARE_MAX * Math.max(word.length, name.length)
    })
    .sort((a, b) => a.distance - b.distance)
  return nearest?.name
}
