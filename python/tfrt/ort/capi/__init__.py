"""Modules under the names that code imports of onnxruntime's inside."""
