import type { Answer, Assessment, AssessmentCategory, AssessmentItem } from '../../engine/store/assessments.ts'
import type { FrameworkId } from '../../engine/store/framework.ts'
import { PublishedList } from '../../engine/store/published.ts'
import type { Store } from '../../engine/store/store.ts'

/** An item with the given answer. The other fields have defaults. */
export function item(id: string, answer: Answer, more: Partial<AssessmentItem> = {}): AssessmentItem {
  return { id, title: `Check ${id}`, weight: 1, priority: 3, recommendation: `Do ${id}.`, answer, note: '', ...more }
}

export function category(name: string, weight: number, items: readonly AssessmentItem[]): AssessmentCategory {
  return { name, weight, items }
}

/** An assessment with one category. */
export function content(frameworkId: FrameworkId, answers: Readonly<Record<string, Answer>>) {
  const items = Object.entries(answers).map(([id, answer]) => item(id, answer))
  return { frameworkId, title: 'Test', categories: [category('All', 1, items)] }
}

export function draft(more: Partial<Assessment> = {}): Assessment {
  return {
    id: '00000000-0000-4000-8000-000000000001',
    organizationId: '00000000-0000-4000-8000-000000000002',
    frameworkId: 'hipaa',
    status: 'draft',
    title: 'Test',
    startedAtMs: 1,
    completedAtMs: 0,
    updatedAtMs: 1,
    completion: 0,
    result: null,
    ...more,
  }
}

/** A list as the API returns it. */
export function publishedList(
  store: Store,
  organizationId: string,
  list: 'scores' | 'recommendations' | 'assessments',
): Record<string, unknown>[] {
  return store.environment.read(() => {
    const number = PublishedList[list]
    const count = store.published.head(organizationId, number)?.count ?? 0
    const runs = store.published.elements(organizationId, number, count, 0, count)
    return JSON.parse(`[${Buffer.concat(runs).toString()}]`) as Record<string, unknown>[]
  })
}
