import { PageFrame } from "../../app/PageFrame";

export function BulkPage() {
  return <PageFrame title="BulkPage">{null}</PageFrame>;
}

export function BulkDetailPage() {
  return <PageFrame title="BulkDetailPage">{null}</PageFrame>;
}
