"""The live view: panels fed by the topics and views of a pipeline, declared in `view.yml`."""
