/*
 * The version of the registry's data: the day of the release, and a number from 2 on if the day has
 * more than one: 2026.11.23, 2026.11.23.2. Its schema is data-version-schema.ts, which threads that
 * only compare versions need not load.
 */

/** The day of a version: 2026-11-23. */
export function dayOfVersion(version: string): string {
  return version.slice(0, 10).replaceAll('.', '-')
}

/** Negative if `a` is older than `b`, 0 if they are equal. */
export function compareVersions(a: string, b: string): number {
  const [dayOfA, dayOfB] = [dayOfVersion(a), dayOfVersion(b)]
  if (dayOfA !== dayOfB) return dayOfA < dayOfB ? -1 : 1
  return numberOf(a) - numberOf(b)
}

function numberOf(version: string): number {
  return Number(version.split('.')[3] ?? 1)
}
