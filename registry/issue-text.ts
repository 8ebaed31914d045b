import type { z } from 'zod'

/** The error of a schema in words of the file. The library's own text is about its types. */
export function issueText(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') return `unknown key ${issue.keys.map((key) => `"${key}"`).join(', ')}`
  return issue.message
    .replace(/^Invalid input: expected (.*), received undefined$/, 'is missing; expected $1')
    .replace(/^Invalid input: expected (.*), received (.*)$/, 'expected $1, found $2')
}
